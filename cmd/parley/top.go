package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/internal/screen/top"
)

// minInterval bounds the load that a screen puts on a hub.
const minInterval = 100 * time.Millisecond

func (a *app) top() *cobra.Command {
	var interval time.Duration
	var once bool
	c := a.withHub(&cobra.Command{
		Use:   "top",
		Short: "Watch what the hub does: channels, requests, agents, refusals",
		Long: `Watch what the hub does, on a terminal of 80 × 24 or more: how much it admits and
delivers, how long its disk takes, and four lists.

  1  channels: how fast each grows, whose turn it is, and when that is due
  2  requests that are open
  3  agents, the fullest inbox first
  4  refusals since the hub was started, by code
  s  sort by something else        /  show only rows with a text
  ↑↓ select a row                  Enter  follow its channel, or list an agent's
  a  d  approve or deny a request; the same key again confirms
  q  quit

A hub that restarts is waited for. Not on a terminal, and with --once or -o json,
it prints one snapshot, of the time of one interval. It takes a key of role reader
or operator.`,
		Example: "  parley top --once",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, hub *v1.Client, _ []string) error {
		if interval < minInterval {
			return usageError("--interval %s is too short; the least is %s", interval, minInterval)
		}
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		if once || a.output == "json" || !a.onTerminal() {
			return a.topOnce(ctx, hub, interval)
		}
		a.quiet = true
		model := top.New(top.NewLive(ctx, hub, a.colours()), interval)
		if err := a.runScreen(ctx, model); err != nil {
			return err
		}
		return model.Err()
	})
	c.Flags().DurationVar(&interval, "interval", time.Second, "how often the hub is asked")
	c.Flags().BoolVar(&once, "once", false, "print one snapshot and end")
	return c
}

// topOnce prints the figures of one interval.
func (a *app) topOnce(ctx context.Context, hub *v1.Client, interval time.Duration) error {
	before, err := top.Take(ctx, hub, nil)
	if err != nil {
		return err
	}
	select {
	case <-time.After(interval):
	case <-ctx.Done():
		return ctx.Err()
	}
	s, err := top.Take(ctx, hub, before)
	if err != nil {
		return err
	}
	return a.print(s, func(w io.Writer) error { return top.Write(w, s, a.width()) })
}

// onTerminal reports whether input and output are a terminal.
func (a *app) onTerminal() bool {
	in, ok := a.in.(*os.File)
	return ok && isTerminal(in) && isTerminal(a.out)
}

// runScreen shows a model until it quits or ctx ends.
func (a *app) runScreen(ctx context.Context, model tea.Model) error {
	program := tea.NewProgram(model, tea.WithContext(ctx), tea.WithInput(a.in), tea.WithOutput(a.out), tea.WithEnvironment(a.environ), tea.WithoutSignalHandler())
	_, err := program.Run()
	if ctx.Err() != nil || errors.Is(err, tea.ErrInterrupted) {
		return nil // ctx ended
	}
	return err
}
