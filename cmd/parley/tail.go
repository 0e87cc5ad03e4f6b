package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
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
		id, err := findChannel(ctx, hub, args[0])
		if err != nil {
			return err
		}
		ch, err := hub.Channel(ctx, id)
		if err != nil {
			return err
		}
		line := a.lines(ch)
		query := v1.EventQuery{As: as, After: after}
		if ch.Ended() {
			return hub.Events(ctx, id, query, line.event)
		}
		return hub.FollowEvents(ctx, id, query, func(f v1.Frame) error {
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
			// A client may post this type too, so the hub is asked.
			if ev.Type == envelope.TypeClosed && hub.HasEnded(ctx, id) {
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

// lines prints a channel's envelopes: in words on a terminal or where text is asked
// for, else as JSON.
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

// words is an envelope as one line for a person.
func (p *printer) words(ev *v1.Event) string {
	who := nameIn(p.ch, ev.Sender)
	if ev.Audience != nil && !strings.HasPrefix(ev.Type, "ag2.channel.") {
		names := make([]string, len(ev.Audience))
		for i, id := range ev.Audience {
			names[i] = nameIn(p.ch, id)
		}
		who += " → " + strings.Join(names, ", ")
	}
	head := fmt.Sprintf("%s %4d  ", ev.CreatedAt.Local().Format("15:04:05"), ev.Sequence)
	what, quiet := describeEvent(ev)
	who, what = cell(who), cell(what)
	if !p.colour {
		return head + who + ": " + what
	}
	if quiet {
		return dim(head + who + ": " + what)
	}
	return dim(head) + paint(who) + ": " + what
}

// describeEvent says what an envelope says, and whether it is only bookkeeping.
func describeEvent(ev *v1.Event) (text string, quiet bool) {
	var data struct {
		Text    string `json:"text"`
		Body    string `json:"body"`
		Reason  string `json:"reason"`
		Routing struct {
			Kind, Tool, Reason, Target string
		} `json:"routing"`
	}
	_ = json.Unmarshal(ev.Data, &data) // what does not fit is shown as it is
	switch ev.Type {
	case envelope.TypeText:
		return data.Text, false
	case envelope.TypePacket:
		text := data.Body
		switch data.Routing.Kind {
		case "handoff":
			text = strings.TrimSpace("[hands over via " + data.Routing.Tool + "] " + data.Routing.Reason + " " + text)
		case "finish":
			text = strings.TrimSpace("[finishes: " + data.Routing.Reason + "] " + text)
		}
		return text, false
	case envelope.TypeClosed, envelope.TypeExpired:
		return strings.TrimPrefix(ev.Type, "ag2.channel.") + " (" + data.Reason + ")", true
	case envelope.TypeInvite, envelope.TypeInviteAck, envelope.TypeInviteReject, envelope.TypeOpened:
		return strings.TrimPrefix(ev.Type, "ag2.channel."), true
	}
	return ev.Type + " " + string(ev.Data), strings.HasPrefix(ev.Type, "ag2.")
}

func dim(s string) string { return "\x1b[2m" + s + "\x1b[0m" }

// paint gives each name a colour of its own.
func paint(name string) string {
	sum := 0
	for _, r := range name {
		sum = sum*31 + int(r)
	}
	return fmt.Sprintf("\x1b[1;%dm%s\x1b[0m", 31+(sum%6+6)%6, name)
}
