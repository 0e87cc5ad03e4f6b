package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/request"
)

func (a *app) join() *cobra.Command {
	return a.withHub(&cobra.Command{
		Use:   "join NAME [CHANNEL]",
		Short: "Take part as a person: read a channel, and speak in it line by line",
		Long: `Take part as a person. Without a CHANNEL it lists what waits for NAME: turns,
requests and invitations. With one it shows the channel as it goes on and says
whose turn it is; each line that is typed is said in it. A hub that restarts is
waited for, and nothing is said twice. The end of the input leaves, and so does
the end of the channel.

Lines that begin with a slash are commands:

  /accept  /decline            the invitation to this channel
  /answer REQUEST [CHOICE]     answer a request
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
		if len(args) == 1 {
			return a.listWaiting(ctx, hub, me)
		}
		id, err := findChannel(ctx, hub, args[1])
		if err != nil {
			return err
		}
		ch, err := hub.Channel(ctx, id)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(ch.Participants, func(p v1.Participant) bool { return p.Agent == me.Passport.ID }) {
			return fault.New(fault.AccessDenied, "%s is not in this channel; it is between %s", cell(me.Passport.Name), people(ch))
		}
		return a.talk(ctx, hub, me, ch)
	})
}

// waitingFor is what waits for somebody.
type waitingFor struct {
	Turns       []v1.Turn    `json:"turns"`
	Requests    []v1.Request `json:"requests"`
	Invitations []v1.Channel `json:"invitations"`
}

func whatWaits(ctx context.Context, hub *v1.Client, me *v1.Agent) (*waitingFor, error) {
	id := me.Passport.ID
	turns, err := hub.Turns(ctx, id)
	if err != nil {
		return nil, err
	}
	requests, err := hub.Requests(ctx, url.Values{"state": {string(request.Open)}, "for": {id}, "sort": {"due"}})
	if err != nil {
		return nil, err
	}
	pending, err := hub.Channels(ctx, url.Values{"state": {"pending"}, "agent": {id}, "newest": {"true"}})
	if err != nil {
		return nil, err
	}
	w := &waitingFor{Turns: turns.Items, Requests: []v1.Request{}, Invitations: []v1.Channel{}}
	for _, r := range requests.Items {
		if r.Kind != "turn" && r.Kind != "invite" { // they are listed as what they are
			w.Requests = append(w.Requests, r)
		}
	}
	for _, ch := range pending.Items {
		if slices.Contains(ch.PendingAcks, id) {
			ch.Names = pending.Names
			w.Invitations = append(w.Invitations, ch)
		}
	}
	return w, nil
}

func (a *app) listWaiting(ctx context.Context, hub *v1.Client, me *v1.Agent) error {
	waits, err := whatWaits(ctx, hub, me)
	if err != nil {
		return err
	}
	return a.print(waits, func(w io.Writer) error { return waits.write(w, cell(me.Passport.Name)) })
}

func (l *waitingFor) write(w io.Writer, name string) error {
	if len(l.Turns)+len(l.Requests)+len(l.Invitations) == 0 {
		_, err := fmt.Fprintf(w, "Nothing waits for %s.\n", name)
		return err
	}
	for _, t := range l.Turns {
		fmt.Fprintf(w, "turn        %s  %s, %s  (parley join %s %s)\n", t.Channel, cell(t.Title), ago(t.Since), name, t.Channel)
	}
	for _, r := range l.Requests {
		fmt.Fprintf(w, "request     %s  %s  (/answer %s%s)\n", cell(r.ID), cell(r.Title), cell(r.ID), choices(r))
	}
	for i := range l.Invitations {
		ch := &l.Invitations[i]
		fmt.Fprintf(w, "invitation  %s  %s of %s  (parley join %s %s, then /accept or /decline)\n", ch.ID, ch.Manifest.Type, people(ch), name, ch.ID)
	}
	return nil
}

func choices(r v1.Request) string {
	text := ""
	for i, c := range r.Choices {
		if i > 0 {
			text += "|"
		} else {
			text = " "
		}
		text += cell(c.ID)
	}
	return text
}
