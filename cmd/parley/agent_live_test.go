package main

import (
	"context"
	"testing"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
)

// What a model writes is shown in order, together while something is on its way,
// and anew after it was taken back. What it calls tools with is not shown.
func TestDeltasOfAModel(t *testing.T) {
	t.Parallel()
	shown, hold := make(chan agent.Delta), make(chan struct{})
	d := newDeltas(func(ctx context.Context, ch string, delta agent.Delta) error {
		if ch != "c" {
			t.Errorf("shown in %s", ch)
		}
		shown <- delta
		select {
		case <-hold:
		case <-ctx.Done():
		}
		return nil
	})
	stop := d.run(t.Context())
	defer stop()
	turn := &agent.Turn{Channel: &channel.Metadata{ID: "c"}, Trigger: &envelope.Envelope{ID: "e"}}
	write := func(text string) {
		d.observe(t.Context(), turn, runner.Event{Delta: &message.Envelope{Type: message.TypeDelta, Content: text}})
	}
	want := func(delta agent.Delta) {
		t.Helper()
		if got := <-shown; got != delta {
			t.Errorf("shown %+v, want %+v", got, delta)
		}
	}
	write("one")
	want(agent.Delta{Trigger: "e", Text: "one"})
	d.observe(t.Context(), turn, runner.Event{Delta: new(provider.Delta(provider.DeltaToolCall, 1, `{"content":"psst"}`, "say", "c-1"))})
	write(" two")
	write(" three")
	hold <- struct{}{}
	want(agent.Delta{Trigger: "e", At: 3, Text: " two three"})
	d.observe(t.Context(), turn, runner.Event{Reset: true})
	write("again")
	hold <- struct{}{}
	want(agent.Delta{Trigger: "e", Text: "again", Reset: true})
	close(hold)
	d.observe(t.Context(), nil, runner.Event{Reset: true}) // of no turn: nothing to show it in
}
