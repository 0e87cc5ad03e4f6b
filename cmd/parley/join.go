package main

import (
	"context"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/internal/screen/join"
)

func (a *app) join() *cobra.Command {
	return a.withHub(&cobra.Command{
		Use:   "join NAME [CHANNEL]",
		Short: "Take part as a person: read a channel, and speak in it",
		Long: `Take part as a person. Without a CHANNEL it lists what waits for NAME: turns,
requests and invitations. With one it shows the channel as it goes on and says
whose turn it is; each line that is typed is said in it. A hub that restarts is
waited for, and nothing is said twice.

On a terminal this is a screen with an input line, and the list leads to the
channels; Esc goes back to it, Ctrl+C leaves. Otherwise it is lines in and lines
out: the end of the input leaves, and so does the end of the channel.

Lines that begin with a slash are commands:

  /accept  /decline            the invitation to this channel
  /answer REQUEST [CHOICE]     answer a request, by choice or in words; the
                               only one that waits needs no name
  /waiting                     list what waits
  /leave                       leave; the channel goes on`,
		Example: "  echo hello | parley join alice $CHANNEL",
		Args:    cobra.RangeArgs(1, 2),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		me, err := hub.Agent(ctx, args[0])
		if err != nil {
			return err
		}
		screen := a.onTerminal() && a.output != "json"
		if len(args) == 1 {
			if screen {
				return a.joinScreen(ctx, hub, me, "")
			}
			return a.listWaiting(ctx, hub, me)
		}
		id, err := findChannel(ctx, hub, args[1])
		if err != nil {
			return err
		}
		talk, err := join.Open(ctx, hub, me, id)
		if err != nil {
			return err
		}
		if screen {
			return a.joinScreen(ctx, hub, me, id)
		}
		return a.talk(ctx, talk)
	})
}

func (a *app) listWaiting(ctx context.Context, hub *v1.Client, me *v1.Agent) error {
	waits, err := join.WhatWaits(ctx, hub, me.Passport.ID)
	if err != nil {
		return err
	}
	return a.print(waits, line(strings.Join(waits.Lines(cell(me.Passport.Name), time.Now()), "\n")))
}

// joinScreen shows a person's channel, or all that waits for them, until they leave.
func (a *app) joinScreen(ctx context.Context, hub *v1.Client, me *v1.Agent, channel string) error {
	a.quiet = true
	model := join.New(join.NewLive(ctx, hub, me, a.colours()), me, channel)
	if err := a.runScreen(ctx, model); err != nil {
		return err
	}
	return model.Err()
}
