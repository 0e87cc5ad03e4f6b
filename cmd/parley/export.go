package main

import (
	"bufio"
	"context"

	"github.com/spf13/cobra"
)

func (a *app) export() *cobra.Command {
	var after, as string
	c := a.withHub(&cobra.Command{
		Use:     "export CHANNEL",
		Short:   "Write a channel's envelopes as JSON lines",
		Example: "  parley export $CHANNEL > channel.jsonl",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *hubClient, args []string) error {
		out := bufio.NewWriter(a.out)
		err := hub.pages(ctx, args[0], as, after, func(ev *event) error {
			if _, err := out.Write(ev.raw); err != nil {
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
