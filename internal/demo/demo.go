// Package demo plays a small incident on a real hub in a process of its own:
// scripted participants, a person who corrects one of them, and a crash in the
// middle. At the end it checks the log. It needs no model and no key.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/parley-hub/parley/client/v1"
)

// timeout is generous: the demo takes a few seconds.
const timeout = 60 * time.Second

// Options say where the demo is shown and how.
type Options struct {
	Out     io.Writer
	JSON    bool   // one JSON object for each step, instead of words
	Keep    bool   // leave the hub running until ctx ends, and keep its folder
	Program string // how the reader starts the command, for what to try next

	// Line is an envelope of a channel as one line for a person.
	Line func(*v1.Channel, *v1.Event) string
}

// show prints what happens.
type show struct{ Options }

// Run plays the demo: it starts a hub by running this program's own serve
// command, and returns an error when something was lost or doubled.
func Run(ctx context.Context, o Options) (err error) {
	a := show{o}
	dir, err := os.MkdirTemp("", "parley-demo-")
	if err != nil {
		return err
	}
	if !a.Keep {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	hub := &process{dir: filepath.Join(dir, "data"), log: filepath.Join(dir, "hub.log")}
	defer hub.stop()
	if err := hub.start(ctx); err != nil {
		return err
	}
	a.happened("hub_started", map[string]any{"url": hub.url, "data": hub.dir}, "A hub is running at %s.", hub.url)

	playing, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cast, err := assemble(playing, hub)
	if err != nil {
		return err
	}
	defer cast.leave()
	a.happened("assembled", map[string]any{"agents": cast.ids()},
		`These take part, each in its own protocol:
  triage    an AG2 client, over a WebSocket
  database  an HPD client, over HTTP and server-sent events
  network   an AGH peer, over the hub's NATS server
  hana      a person
triage opens the incident.
`)
	outcome, err := a.perform(playing, hub, cast)
	if err != nil {
		return err
	}
	if err := a.report(ctx, hub, outcome); err != nil {
		return err
	}
	if !a.JSON {
		a.tryNext(hub, outcome.channel)
	}
	if a.Keep {
		<-ctx.Done()
	}
	return nil
}

func (a show) say(format string, args ...any) { fmt.Fprintf(a.Out, format+"\n", args...) }

// happened prints a step of the demo: in words, or with -o json as a line with
// the event's name and data.
func (a show) happened(event string, data map[string]any, format string, args ...any) {
	if !a.JSON {
		a.say(format, args...)
		return
	}
	line := map[string]any{"event": event}
	maps.Copy(line, data)
	encoder := json.NewEncoder(a.Out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(line) // a write error means that nobody reads
}

func (a show) tryNext(hub *process, channel string) {
	if a.Keep {
		a.say("\nThe hub goes on until Ctrl+C; its data is in %s. Try, in another terminal:", hub.dir)
		a.say("  %s channels show %s --hub %s", a.Program, channel, hub.url)
		a.say("  %s tail %s --hub %s", a.Program, channel, hub.url)
		a.say("  %s audit --hub %s", a.Program, hub.url)
		return
	}
	a.say("\nTry next:")
	for _, next := range [][2]string{
		{"demo --keep", "the same, and the hub stays, to look around in"},
		{"serve", "a hub of your own"},
		{"agent echo parrot", "someone to talk to, in another terminal"},
	} {
		a.say("  %s %-17s     %s", a.Program, next[0], next[1])
	}
}

// report shows the transcript, the way through the graph, and the checks.
func (a show) report(ctx context.Context, hub *process, o *outcome) error {
	client, err := v1.New(hub.url, v1.Options{})
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
	if err := client.Call(ctx, "GET", path, nil, &transcript); err != nil {
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
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ") + "\n"
}
