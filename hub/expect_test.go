package hub_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// expectation returns an entry of the list in the knob.
func expectation(name, onViolation, params string) string {
	return fmt.Sprintf(`{"name":%q,"on_violation":%q,"params":%s}`, name, onViolation, params)
}

// fired returns the audit records of violations, each as the expectation's name and
// violators.
func (r *rig) fired() []string {
	r.t.Helper()
	list := []string{}
	for _, record := range r.audit("expectation_violated") {
		list = append(list, fmt.Sprintf("%v %v", record["expectation"], record["violators"]))
	}
	return list
}

// sweep checks what is due now.
func (r *rig) sweep() { r.SweepExpectations(context.Background()) }

func TestAcksWithin(t *testing.T) {
	t.Parallel()
	// pending opens a channel that bob does not ack, without waiting.
	pending := func(r *rig, params string) (ch string, a, b *agent) {
		a, b = r.agent("alice"), r.agent("bob").ignoreInvites()
		go func() {
			_, _ = r.tryOpen("conversation", expecting("["+expectation("acks_within", "audit", params)+"]"), a, b)
		}()
		r.settle()
		list, _, err := r.Channels(context.Background(), hub.ListOptions{})
		if err != nil || len(list) != 1 {
			r.t.Fatalf("%v %v", list, err)
		}
		return list[0].ID, a, b
	}
	slow := byHand
	slow.InviteAckTimeout = time.Hour
	holds(t, "ag2-channels#112: fires past T", slow, func(t *spec.T, r *rig) {
		ch, _, b := pending(r, `{"seconds":20}`)
		r.pass(25 * time.Second)
		r.sweep()
		t.Equal(r.audit("expectation_violated"), []map[string]any{{
			"kind": "expectation_violated", "channel_id": ch, "expectation": "acks_within", "on_violation": "audit",
			"params": map[string]any{"seconds": 20.0}, "violators": []any{b.id},
			"detail": map[string]any{"elapsed_seconds": 25.0, "threshold_seconds": 20.0},
		}})
	})
	holds(t, "ag2-channels#112: fires exactly at T and is silent 1 ms before", slow, func(t *spec.T, r *rig) {
		_, _, b := pending(r, `{"seconds":20}`)
		r.pass(20*time.Second - time.Millisecond)
		r.sweep()
		t.Equal(r.fired(), []string{})
		r.pass(time.Millisecond)
		r.sweep()
		t.Equal(r.fired(), []string{"acks_within [" + b.id + "]"})
	})
	holds(t, "ag2-channels#112: silent without pending acks, and when active", slow, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", expecting("["+expectation("acks_within", "audit", `{"seconds":20}`)+"]"), a, b)
		t.Equal(r.channel(ch).State, channel.Active)
		r.pass(time.Minute)
		r.sweep()
		t.Equal(r.fired(), []string{})
	})
	holds(t, "ag2-channels#112: an ack in time silences it", slow, func(t *spec.T, r *rig) {
		ch, _, b := pending(r, `{"seconds":20}`)
		r.pass(10 * time.Second)
		if _, err := r.Post(context.Background(), invitation(b, ch, envelope.TypeInviteAck), nil); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Minute)
		r.sweep()
		t.Equal(r.channel(ch).State, channel.Active)
		t.Equal(r.fired(), []string{})
	})
	holds(t, "ag2-channels#112: silent when active with acks outstanding", slow, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol").ignoreInvites()
		one := 1
		ch := r.openWith("discussion", func(o *hub.Opening) {
			o.RequiredAcks = &one
			expecting("[" + expectation("acks_within", "audit", `{"seconds":20}`) + "]")(o)
		}, a, b, c)
		t.Equal(r.channel(ch).PendingAcks, []string{c.id})
		r.pass(time.Minute)
		r.sweep()
		t.Equal(r.fired(), []string{})
	})
	holds(t, "ag2-channels#112: T=0 fires at once", slow, func(t *spec.T, r *rig) {
		_, _, b := pending(r, `{"seconds":0}`)
		r.sweep()
		t.Equal(r.fired(), []string{"acks_within [" + b.id + "]"})
	})
	holds(t, "ag2-channels#112: without params T is 30", slow, func(t *spec.T, r *rig) {
		_, _, b := pending(r, `{}`)
		r.pass(30*time.Second - time.Millisecond)
		r.sweep()
		t.Equal(r.fired(), []string{})
		r.pass(time.Millisecond)
		r.sweep()
		t.Equal(r.fired(), []string{"acks_within [" + b.id + "]"})
	})
	runs(t, "each of several violators fires, with all of them named", slow, func(t *testing.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob").ignoreInvites(), r.agent("carol").ignoreInvites()
		go func() {
			_, _ = r.tryOpen("discussion", expecting("["+expectation("acks_within", "audit", `{"seconds":20}`)+"]"), a, b, c)
		}()
		r.pass(20 * time.Second)
		r.sweep()
		both := fmt.Sprintf("acks_within [%s %s]", b.id, c.id)
		if got := r.fired(); !slices.Equal(got, []string{both, both}) {
			t.Fatalf("got %q", got)
		}
	})
}

func TestReplyWithin(t *testing.T) {
	t.Parallel()
	expected := expecting("[" + expectation("reply_within", "audit", `{"seconds":60}`) + "]")
	holds(t, "ag2-channels#113: an addressed silent party is flagged at exactly T", byHand, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", expected, a, b)
		r.pass(5 * time.Minute)
		r.sweep()
		r.say(a, ch, "well?")
		r.pass(time.Minute - time.Millisecond)
		r.sweep()
		t.Equal(r.fired(), []string{})
		r.pass(time.Millisecond)
		r.sweep()
		t.Equal(r.audit("expectation_violated"), []map[string]any{{
			"kind": "expectation_violated", "channel_id": ch, "expectation": "reply_within", "on_violation": "audit",
			"params": map[string]any{"seconds": 60.0}, "violators": []any{b.id},
			"detail": map[string]any{"threshold_seconds": 60.0},
		}})
	})
	holds(t, "ag2-channels#113: after a reply the other side becomes the flagged one", byHand, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", expected, a, b)
		r.say(a, ch, "well?")
		r.pass(50 * time.Second)
		r.say(b, ch, "well")
		r.pass(time.Minute)
		r.sweep()
		t.Equal(r.fired(), []string{"reply_within [" + a.id + "]"})
		r.pass(time.Hour)
		r.sweep()
		t.Equal(r.fired(), []string{"reply_within [" + a.id + "]"})
	})
	holds(t, "ag2-channels#113: both inside T gives none", byHand, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", expected, a, b)
		for range 5 {
			r.say(a, ch, "ping")
			r.pass(40 * time.Second)
			r.say(b, ch, "pong")
			r.pass(40 * time.Second)
			r.sweep()
		}
		t.Equal(r.fired(), []string{})
	})
	holds(t, "ag2-channels#113: without params T is 600", byHand, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", expecting("["+expectation("reply_within", "audit", `{}`)+"]"), a, b)
		r.say(a, ch, "well?")
		r.pass(10*time.Minute - time.Millisecond)
		r.sweep()
		t.Equal(r.fired(), []string{})
		r.pass(time.Millisecond)
		r.sweep()
		t.Equal(r.fired(), []string{"reply_within [" + b.id + "]"})
	})
	holds(t, "ag2-channels#113: what is addressed to another, and a packet, ask for no reply", byHand, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.openWith("discussion", expected, a, b, c)
		r.post(c, ch, envelope.TypePacket, `{"routing":{"kind":"text"},"body":"x"}`)
		r.post(a, ch, envelope.TypeText, `{"text":"bob?"}`, func(e *envelope.Envelope) { e.Audience = []string{b.id} })
		r.post(b, ch, envelope.TypePacket, `{"routing":{"kind":"text"},"body":"no reply"}`)
		r.pass(time.Minute)
		r.sweep()
		t.Equal(r.fired(), []string{"reply_within [" + b.id + "]"})
	})
	holds(t, "ag2-channels#113: a reply at the same instant is one", byHand, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", expected, a, b)
		r.say(a, ch, "well?")
		r.say(b, ch, "well")
		r.pass(time.Hour)
		r.sweep()
		t.Equal(r.fired(), []string{})
	})
	exclusive := byHand
	exclusive.Adapters = []channel.Adapter{claiming{}}
	runs(t, "a reply that was refused is none", exclusive, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		here := in(r.home("test", "one"))
		r.say(a, r.openWith("conversation", func(o *hub.Opening) { expecting("[]")(o); here(o) }, a, b), "mine")
		ch := r.openWith("conversation", func(o *hub.Opening) { expected(o); here(o) }, a, b)
		r.say(b, ch, "so?")
		r.pass(time.Second)
		r.say(a, ch, "well?")
		r.pass(time.Second)
		if _, err := r.trySay(b, ch, "mine"); fault.CodeOf(err) != fault.Conflict {
			t.Fatalf("got %v", err)
		}
		r.pass(time.Minute)
		r.sweep()
		if got := r.fired(); !slices.Equal(got, []string{"reply_within [" + b.id + "]"}) {
			t.Fatalf("got %q", got)
		}
	})
	runs(t, "what was said before a restart still asks for a reply", byHand, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", expected, a, b)
		r.say(a, ch, "well?")
		r.restart()
		r.pass(time.Minute)
		r.sweep()
		if got := r.fired(); !slices.Equal(got, []string{"reply_within [" + b.id + "]"}) {
			t.Fatalf("got %q", got)
		}
	})
}

func TestMaxSilence(t *testing.T) {
	t.Parallel()
	expected := expecting("[" + expectation("max_silence", "audit", `{"seconds":90.5}`) + "]")
	holds(t, "ag2-channels#114: channel-wide at exactly T from the last content", byHand, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", expected, a, b)
		r.pass(time.Minute)
		r.post(b, ch, "my.own", `{}`)
		r.pass(90*time.Second + 499*time.Millisecond)
		r.sweep()
		t.Equal(r.fired(), []string{})
		r.pass(time.Millisecond)
		r.sweep()
		t.Equal(r.audit("expectation_violated"), []map[string]any{{
			"kind": "expectation_violated", "channel_id": ch, "expectation": "max_silence", "on_violation": "audit",
			"params": map[string]any{"seconds": 90.5}, "violators": []any{},
			"detail": map[string]any{"elapsed_seconds": 90.5, "threshold_seconds": 90.5},
		}})
	})
	holds(t, "ag2-channels#114: without content it counts from the creation", byHand, func(t *spec.T, r *rig) {
		r.openWith("conversation", expected, r.agent("alice"), r.agent("bob"))
		r.pass(90*time.Second + 499*time.Millisecond)
		r.sweep()
		t.Equal(r.fired(), []string{})
		r.pass(time.Millisecond)
		r.sweep()
		t.Equal(r.fired(), []string{"max_silence []"})
	})
	holds(t, "ag2-channels#114: recent content silences it; task and channel events do not", byHand, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", expected, a, b)
		r.pass(80 * time.Second)
		r.post(b, ch, envelope.TypeContextSet, `{"set":{}}`)
		r.pass(80 * time.Second)
		r.sweep()
		t.Equal(r.fired(), []string{})
		r.post(b, ch, envelope.TypeTaskProgress, `{}`)
		r.post(b, ch, envelope.TypeExpectationViolated, `{}`)
		r.post(b, ch, envelope.WireExpectationViolated, `{}`)
		r.pass(11 * time.Second)
		r.sweep()
		t.Equal(r.fired(), []string{"max_silence []"})
	})
	holds(t, "ag2-channels#114: T=0 fires", byHand, func(t *spec.T, r *rig) {
		r.openWith("conversation", expecting("["+expectation("max_silence", "audit", `{"seconds":0}`)+"]"), r.agent("alice"), r.agent("bob"))
		r.sweep()
		t.Equal(r.fired(), []string{"max_silence []"})
	})
	holds(t, "ag2-channels#114: without params T is 3600", byHand, func(t *spec.T, r *rig) {
		r.openWith("conversation", expecting("["+expectation("max_silence", "audit", `{}`)+"]"), r.agent("alice"), r.agent("bob"))
		r.pass(time.Hour - time.Millisecond)
		r.sweep()
		t.Equal(r.fired(), []string{})
		r.pass(time.Millisecond)
		r.sweep()
		t.Equal(r.fired(), []string{"max_silence []"})
	})
	runs(t, "a silence too long to be told never ends", byHand, func(t *testing.T, r *rig) {
		r.openWith("conversation", expecting("["+expectation("max_silence", "audit", `{"seconds":1e300}`)+"]"), r.agent("alice"), r.agent("bob"))
		r.pass(time.Hour)
		r.sweep()
		if got := r.fired(); len(got) != 0 {
			t.Fatalf("got %q", got)
		}
	})
}
