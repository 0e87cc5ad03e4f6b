package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
)

func TestExpectationsFireOnce(t *testing.T) {
	t.Parallel()
	holds(t, "ag2-channels#118: three ticks, one firing", byHand, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		// The missing reply makes the last tick check the channel again.
		ch := r.openWith("conversation", expecting("["+expectation("max_silence", "notify", `{"seconds":60}`)+","+expectation("reply_within", "audit", `{"seconds":180}`)+"]"), a, b)
		r.say(a, ch, "well?")
		before := r.types(ch)
		for range 3 {
			r.pass(time.Minute)
			r.sweep()
		}
		t.Equal(r.fired(), []string{"max_silence []", "reply_within [" + b.id + "]"})
		t.Equal(r.types(ch), append(before, envelope.TypeExpectationViolated))
		t.Equal(len(r.ear.fired), 2)
	})
	runs(t, "also after recovering, and across a restart", byHand, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", expecting("["+expectation("max_silence", "audit", `{"seconds":60}`)+"]"), a, b)
		for range 3 {
			r.pass(2 * time.Minute)
			r.sweep()
			r.say(a, ch, "still here")
			r.restart()
		}
		if got := r.fired(); !slices.Equal(got, []string{"max_silence []"}) {
			t.Fatalf("fired %q", got)
		}
	})
	holds(t, "ag2-channels#119: the same name twice fires each at its own T", byHand, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", expecting("["+expectation("max_silence", "notify", `{"seconds":60}`)+","+expectation("max_silence", "audit", `{"seconds":90}`)+"]"), a, b)
		before := len(r.types(ch))
		r.pass(time.Minute)
		r.sweep()
		t.Equal(r.fired(), []string{"max_silence []"})
		t.Equal(len(r.types(ch)), before+1)
		r.pass(29 * time.Second)
		r.sweep()
		t.Equal(len(r.fired()), 1)
		r.pass(time.Second)
		r.sweep()
		handlers := []any{}
		for _, record := range r.audit("expectation_violated") {
			handlers = append(handlers, record["on_violation"])
		}
		t.Equal(handlers, []any{"notify", "audit"})
		t.Equal(len(r.types(ch)), before+1)
		r.pass(time.Hour)
		r.sweep()
		t.Equal(len(r.fired()), 2)
	})
	var calls []string
	failing := byHand
	failing.Handlers = map[string]hub.Handler{
		"fails":  handlerFunc(func(channelID string) error { calls = append(calls, channelID); return errors.New("no") }),
		"panics": handlerFunc(func(channelID string) error { calls = append(calls, channelID); panic("no") }),
	}
	holds(t, "ag2-channels#120: a failing handler does not stop the sweep and is not retried", failing, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		first := r.openWith("conversation", expecting("["+expectation("max_silence", "fails", `{"seconds":60}`)+","+expectation("max_silence", "panics", `{"seconds":60}`)+","+
			expectation("max_silence", "audit", `{"seconds":120}`)+"]"), a, b) // the last one makes a later tick check again
		second := r.openWith("conversation", expecting("["+expectation("max_silence", "auto_close", `{"seconds":60}`)+"]"), a, b)
		for range 3 {
			r.pass(time.Minute)
			r.sweep()
		}
		t.Equal(calls, []string{first, first})
		t.Equal(r.channel(first).State, channel.Active)
		t.Equal(r.channel(second).State, channel.Closed)
		t.Equal(r.fired(), []string{"max_silence []", "max_silence []", "max_silence []", "max_silence []"})
	})
	holds(t, "ag2-channels#121: unknown evaluator or handler is ignored without audit", byHand, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", expecting("["+expectation("max_silence", "shout", `{"seconds":1}`)+","+expectation("be_nice", "audit", `{"seconds":1}`)+","+expectation("max_silence", "audit", `{"seconds":60}`)+"]"), a, b)
		before := r.types(ch)
		r.pass(59 * time.Second)
		r.sweep()
		t.Equal(r.fired(), []string{})
		r.pass(time.Second)
		r.sweep()
		t.Equal(r.fired(), []string{"max_silence []"})
		t.Equal(r.types(ch), before)
		t.Equal(len(r.ear.fired), 1)
	})
	holds(t, "ag2-channels#122: two channels auto-closing in one tick both close", byHand, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		expected := expecting("[" + expectation("max_silence", "auto_close", `{"seconds":60}`) + "," + expectation("max_silence", "audit", `{"seconds":60}`) + "]")
		first, second := r.openWith("conversation", expected, a, b), r.openWith("conversation", expected, a, b)
		r.pass(time.Minute)
		r.sweep()
		t.Equal(r.channel(first).State, channel.Closed)
		t.Equal(r.channel(second).State, channel.Closed)
		t.Equal(len(r.fired()), 2) // expectations are no longer checked after a channel's end
	})
	slow := byHand
	slow.InviteAckTimeout = time.Hour
	holds(t, "ag2-channels#122: an end is one, however many violated", slow, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob").ignoreInvites(), r.agent("carol").ignoreInvites()
		opened := make(chan error)
		go func() {
			_, err := r.tryOpen("discussion", expecting("["+expectation("acks_within", "auto_close", `{"seconds":20}`)+"]"), a, b, c)
			opened <- err
		}()
		r.pass(20 * time.Second)
		r.sweep()
		t.ErrorContains(<-opened, "expectation_violated:acks_within")
		t.Equal(r.fired(), []string{fmt.Sprintf("acks_within [%s %s]", b.id, c.id)})
		t.Equal(len(r.audit("channel_closed")), 1)
	})
	holds(t, "ag2-channels#123: the dedupe set is dropped on close", byHand, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		expected := expecting("[" + expectation("max_silence", "audit", `{"seconds":60}`) + "]")
		for range 3 {
			ch := r.openWith("conversation", expected, a, b)
			r.pass(time.Minute)
			r.sweep()
			t.Equal(r.Stats().Loaded, 1)
			r.end(ch, "")
			r.settle()
			t.Equal(r.Stats().Loaded, 0) // what fired is dropped with the fold
		}
		t.Equal(len(r.fired()), 3)
	})
	holds(t, "ag2-channels#124: the background sweep writes audit without manual ticks", hub.Options{}, func(t *spec.T, r *rig) {
		r.open("conversation", r.agent("alice"), r.agent("bob")) // max_silence 3600 audits
		r.pass(time.Hour - time.Second)
		t.Equal(r.fired(), []string{})
		r.pass(11 * time.Second)
		t.Equal(r.fired(), []string{"max_silence []"})
	})
}

type handlerFunc func(channelID string) error

func (f handlerFunc) Handle(_ context.Context, _ *hub.Hub, channelID string, _ hub.Violation) error {
	return f(channelID)
}
