package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) demo() *cobra.Command {
	var keep bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "See a hub at work: an incident, four participants, and a crash in the middle",
		Long: `Start a hub in a temporary folder and let four scripted participants work
through a small incident. The graph routes by context, a specialist hands over to
another, a person corrects it in the middle of its turn, and the hub is killed
and started again. At the end the log is checked: nothing lost, nothing doubled.

No model, no key and no other program is needed.`,
		Example: "  parley demo",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			err := a.runDemo(ctx, keep)
			if err != nil && ctx.Err() != nil {
				return errors.New("the demo was stopped before its end")
			}
			return err
		},
	}
	c.Flags().BoolVar(&keep, "keep", false, "leave the hub running until Ctrl+C, and keep its folder")
	return c
}

// demoTimeout is generous: the demo takes a few seconds.
const demoTimeout = 60 * time.Second

func (a *app) runDemo(ctx context.Context, keep bool) (err error) {
	dir, err := os.MkdirTemp("", "parley-demo-")
	if err != nil {
		return err
	}
	if !keep {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	hub := &demoHub{dir: filepath.Join(dir, "data"), log: filepath.Join(dir, "hub.log")}
	defer hub.stop()
	if err := hub.start(ctx); err != nil {
		return err
	}
	a.happened("hub_started", map[string]any{"url": hub.url, "data": hub.dir}, "A hub is running at %s.", hub.url)

	playing, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	cast, err := assemble(playing, hub.url)
	if err != nil {
		return err
	}
	defer cast.leave()
	a.happened("assembled", map[string]any{"agents": cast.ids()},
		"triage, database, network and hana (a person) are in. triage opens the incident.\n")
	outcome, err := a.perform(playing, hub, cast)
	if err != nil {
		return err
	}
	if err := a.report(ctx, hub, outcome); err != nil {
		return err
	}
	if a.output != "json" {
		a.tryNext(hub, outcome.channel, keep)
	}
	if keep {
		<-ctx.Done()
	}
	return nil
}

func (a *app) say(format string, args ...any) { fmt.Fprintf(a.out, format+"\n", args...) }

// happened tells of a step of the demo: in words, or with -o json as a line with
// the event's name and data.
func (a *app) happened(event string, data map[string]any, format string, args ...any) {
	if a.output != "json" {
		a.say(format, args...)
		return
	}
	line := map[string]any{"event": event}
	maps.Copy(line, data)
	_ = a.print(line, nil) // nobody is left to tell
}

func (a *app) tryNext(hub *demoHub, channel string, keep bool) {
	if keep {
		a.say("\nThe hub goes on until Ctrl+C; its data is in %s. Try, in another terminal:", hub.dir)
		a.say("  %s channels show %s --hub %s", program(), channel, hub.url)
		a.say("  %s tail %s --hub %s", program(), channel, hub.url)
		a.say("  %s audit --hub %s", program(), hub.url)
		return
	}
	a.say("\nTry next:")
	for _, next := range [][2]string{
		{"demo --keep", "the same, and the hub stays, to look around in"},
		{"serve", "a hub of your own"},
		{"agent echo parrot", "someone to talk to, in another terminal"},
	} {
		a.say("  %s %-17s     %s", program(), next[0], next[1])
	}
}

// report shows the transcript, the way through the graph, and the checks.
func (a *app) report(ctx context.Context, hub *demoHub, o *outcome) error {
	client, err := newHubClient(hub.url, "", false)
	if err != nil {
		return err
	}
	var transcript struct {
		Events []struct {
			Role string `json:"role"`
			Text string `json:"text"`
		} `json:"events"`
	}
	path := "/v1/channels/" + o.channel + "/views/named_transcript?as=triage"
	if err := client.call(ctx, "GET", path, nil, &transcript); err != nil {
		return err
	}
	checked, err := o.check(ctx, client)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintln(&text, "\nThe transcript, as triage reads it:")
	for _, e := range transcript.Events {
		if e.Role == "assistant" {
			e.Text = "(triage): " + e.Text
		}
		fmt.Fprintf(&text, "  %s\n", strings.ReplaceAll(e.Text, "\n", "\n    "))
	}
	fmt.Fprintf(&text, "\nThe path taken: %s\n", strings.Join(checked.path, " → "))
	fmt.Fprintf(&text, "\nThe graph with that path, for anything that draws Mermaid:\n\n%s", indent(checked.drawing))
	fmt.Fprintf(&text, "\nChecked against the log of %d envelopes: %d lost, %d doubled, closed with %q.",
		checked.length, checked.lost, checked.doubled, checked.reason)
	a.happened("result", map[string]any{
		"channel_id": o.channel, "url": hub.url, "data": hub.dir, "transcript": transcript.Events,
		"path": checked.path, "mermaid": checked.drawing, "envelopes": checked.length,
		"lost": checked.lost, "doubled": checked.doubled, "close_reason": checked.reason,
	}, "%s", text.String())
	if checked.lost+checked.doubled > 0 {
		return fmt.Errorf("the demo failed: %d lost, %d doubled", checked.lost, checked.doubled)
	}
	return nil
}

func indent(text string) string {
	out := ""
	for line := range linesOf(text) {
		out += "  " + line + "\n"
	}
	return out
}
