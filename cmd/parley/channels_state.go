package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
)

func (a *app) channelsState() *cobra.Command {
	var at uint64
	var c *cobra.Command
	c = a.withHub(&cobra.Command{
		Use:     "state CHANNEL",
		Short:   "Show what a channel folds to, now or after an earlier event",
		Example: "  parley channels state $CHANNEL --at 3",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		ch, err := namedChannel(ctx, hub, args[0])
		if err != nil {
			return err
		}
		var sequence *uint64
		if c.Flags().Changed("at") {
			sequence = &at
		}
		past, err := hub.StateAt(ctx, ch.ID, sequence)
		if err != nil {
			return err
		}
		return a.print(past.Raw, func(w io.Writer) error {
			return table(w, func(w io.Writer) {
				state := past.State
				if past.CloseReason != nil && *past.CloseReason != "" {
					state += " (" + cell(*past.CloseReason) + ")"
				}
				fmt.Fprintf(w, "sequence\t%d\nstate\t%s\n", past.At.Sequence, state)
				if !past.At.CreatedAt.IsZero() {
					fmt.Fprintf(w, "at\t%s\n", past.At.CreatedAt.Format(time.RFC3339))
				}
				if past.Turn != nil {
					fmt.Fprintf(w, "turn\t%s\n", nameOf(past.Turn.Person, ch.Names))
				}
				for _, v := range past.Context {
					fmt.Fprintf(w, "context\t%s = %s, written by %s at %d\n", cell(v.Key), jsonCell(v.Value), nameIn(ch, v.SenderID), v.Sequence)
				}
				fmt.Fprintf(w, "folded\t%s\n", past.Folded)
			})
		})
	})
	c.Flags().Uint64Var(&at, "at", 0, "the `SEQUENCE` of an event; 0 is before the first (default: the newest)")
	return c
}
