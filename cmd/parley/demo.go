package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/internal/demo"
)

func (a *app) demo() *cobra.Command {
	var keep bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "See a hub at work: an incident, four participants in four protocols, and a crash in the middle",
		Long: `Start a hub in a temporary folder and let four scripted participants work
through a small incident, each in a protocol of its own: an AG2 client, an HPD
client, an AGH peer over the hub's NATS server, and a person. The graph routes by
context, a specialist's work is handed over, the person objects in the middle of a
turn and approves the last step, and the hub is killed and started again. At the end
the log is checked: nothing lost, nothing doubled.

No model, no key and no other program is needed.`,
		Example: "  parley demo",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			err := demo.Run(ctx, demo.Options{
				Out: a.out, JSON: a.output == "json", Keep: keep, Program: program(),
				Line: func(ch *v1.Channel, ev *v1.Event) string {
					return (&printer{app: a, ch: ch, colour: a.colours()}).words(ev)
				},
			})
			if err != nil && ctx.Err() != nil {
				return errors.New("the demo was stopped before its end")
			}
			return err
		},
	}
	c.Flags().BoolVar(&keep, "keep", false, "leave the hub running until Ctrl+C, and keep its folder")
	return c
}
