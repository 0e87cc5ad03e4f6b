package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/screen"
)

func (a *app) tail() *cobra.Command {
	var after, as string
	c := a.withHub(&cobra.Command{
		Use:   "tail CHANNEL",
		Short: "Follow a channel: one line for each envelope, until it ends",
		Long: `Follow a channel: one line for each envelope, until the channel ends.

On a terminal, and with -o text, the lines are for reading; otherwise each is the
envelope as JSON.
A hub that restarts is waited for: nothing is missed and nothing comes twice.`,
		Example: "  parley tail $CHANNEL",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		ch, err := namedChannel(ctx, hub, args[0])
		if err != nil {
			return err
		}
		line := a.lines(ch)
		query := v1.EventQuery{As: as, After: after}
		if ch.Ended() {
			return hub.Events(ctx, ch.ID, query, line.event)
		}
		return hub.FollowEvents(ctx, ch.ID, query, func(f v1.Frame) error {
			if f.Name == v1.GapFrame {
				return line.gap(f.Data)
			}
			ev, err := v1.ParseEvent(f.Data)
			if err != nil {
				return err
			}
			if err := line.event(ev); err != nil {
				return err
			}
			// A client may post this type too, so only the hub knows.
			if ev.Type == envelope.TypeClosed && hub.HasEnded(ctx, ch.ID) {
				return v1.ErrStop
			}
			return nil
		})
	})
	c.Flags().StringVar(&after, "after", "", "begin after this `POSITION` (default: the start)")
	c.Flags().StringVar(&as, "as", "", "show what the agent with this `NAME` or id may see")
	return c
}

// printer writes envelopes for people or for programs.
type printer struct {
	app    *app
	ch     *v1.Channel
	json   bool
	colour bool
}

// lines prints a channel's envelopes: in words on a terminal or with -o text, else as
// JSON.
func (a *app) lines(ch *v1.Channel) *printer {
	return &printer{app: a, ch: ch, json: a.output == "json" || !a.outputGiven && !isTerminal(a.out), colour: a.colours()}
}

// colours reports whether lines may be coloured.
func (a *app) colours() bool { return isTerminal(a.out) && lookup(a.environ, "NO_COLOR") == "" }

func (p *printer) gap(data []byte) error {
	if p.json {
		_, err := fmt.Fprintf(p.app.out, "{\"gap\":%s}\n", data)
		return err
	}
	_, err := fmt.Fprintf(p.app.out, "-- something is missing here: %s\n", data)
	return err
}

func (p *printer) event(ev *v1.Event) error {
	if p.json {
		_, err := fmt.Fprintf(p.app.out, "%s\n", ev.Raw)
		return err
	}
	_, err := fmt.Fprintln(p.app.out, p.words(ev))
	return err
}

// words returns an envelope as one line for a person.
func (p *printer) words(ev *v1.Event) string { return screen.Line(p.ch, ev, p.colour) }
