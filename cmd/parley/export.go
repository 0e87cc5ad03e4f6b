package main

import (
	"bufio"
	"context"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
)

func (a *app) export() *cobra.Command {
	var after, as, file string
	var home bool
	c := a.withHub(&cobra.Command{
		Use:   "export CHANNEL",
		Short: "Write a channel's envelopes as JSON lines, or all of it as a bundle",
		Long: `Write a channel's envelopes as JSON lines. With --bundle, write the channel into
a file that parley import and parley replay read: a manifest, every envelope as it
is stored, and a checksum. It has what some participants alone may see, so it needs
an operator's or a reader's key.`,
		Example: `  parley export $CHANNEL > channel.jsonl
  parley export $CHANNEL --bundle incident.bundle`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		if home && file == "" {
			return usageError("--home needs --bundle FILE")
		}
		if file != "" && (after != "" || as != "") {
			return usageError("a bundle is a whole channel: leave out --after and --as")
		}
		id, err := findChannel(ctx, hub, args[0])
		if err != nil {
			return err
		}
		if file != "" {
			return a.exportBundle(ctx, hub, id, file, home)
		}
		out := bufio.NewWriter(a.out)
		err = hub.Events(ctx, id, v1.EventQuery{As: as, After: after}, func(ev *v1.Event) error {
			if _, err := out.Write(ev.Raw); err != nil {
				return err
			}
			return out.WriteByte('\n')
		})
		if err != nil {
			return err
		}
		return out.Flush()
	})
	c.Flags().StringVar(&after, "after", "", "begin after this `POSITION`")
	c.Flags().StringVar(&as, "as", "", "only what the agent with this `NAME` or id may see")
	c.Flags().StringVar(&file, "bundle", "", "write a bundle into this new `FILE`")
	c.Flags().BoolVar(&home, "home", false, "with --bundle: the channel's home, with all its channels and content")
	return c
}
