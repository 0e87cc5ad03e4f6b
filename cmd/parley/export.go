package main

import (
	"bufio"
	"context"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
)

func (a *app) export() *cobra.Command {
	var after, as string
	c := a.withHub(&cobra.Command{
		Use:     "export CHANNEL",
		Short:   "Write a channel's envelopes as JSON lines",
		Example: "  parley export $CHANNEL > channel.jsonl",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		id, err := findChannel(ctx, hub, args[0])
		if err != nil {
			return err
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
	return c
}
