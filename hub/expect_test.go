package hub_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter/conversation"
	"github.com/parley-hub/parley/adapter/discussion"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// expectation writes one for a list in the knob.
func expectation(name, onViolation, params string) string {
	return fmt.Sprintf(`{"name":%q,"on_violation":%q,"params":%s}`, name, onViolation, params)
}

// fired is the audit's records of violations, each as its expectation's name
// and violators.
func (r *rig) fired() []string {
	r.t.Helper()
	list := []string{}
	for _, record := range r.audit("expectation_violated") {
		list = append(list, fmt.Sprintf("%v %v", record["expectation"], record["violators"]))
	}
	return list
}

// sweep looks at what is due now.
func (r *rig) sweep() { r.SweepExpectations(context.Background()) }

func TestAcksWithin(t *testing.T) {
	t.Parallel()
	// pending opens a channel that nobody but the eager acks, without waiting.
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

func TestTurnWithin(t *testing.T) {
	t.Parallel()
	round := func(a, b *agent) func(*hub.Opening) {
		return knobs(`{"graph":{"initial_speaker":"` + a.id + `","transitions":[{"when":{"name":"always","args":{}},"then":{"name":"round_robin","args":{}}}],"default_target":{"name":"stay","args":{}}}}`)
	}
	holds(t, "seed-002#10: one warning after 120 s, and the channel goes on", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("workflow", round(a, b), a, b)
		r.pass(30 * time.Second)
		r.say(a, ch, "go")
		opened := r.types(ch)
		a.clear()
		b.clear()
		r.pass(119 * time.Second)
		t.Equal(r.types(ch), opened)
		r.pass(11 * time.Second)
		t.Equal(r.types(ch), append(opened, envelope.TypeExpectationViolated))
		t.Equal(r.channel(ch).State, channel.Active)
		last := r.log(ch)[len(opened)]
		t.Equal(last.Sender, a.id)
		t.Equal(last.Audience, []string{a.id, b.id})
		t.Equal(string(last.Data), `{"expectation":"turn_within","violators":["`+b.id+`"],"detail":{"elapsed_seconds":120,"threshold_seconds":120,"expected_speaker":"`+b.id+`"}}`)
		t.Equal(a.received(), []string{envelope.TypeExpectationViolated})
		t.Equal(b.received(), []string{envelope.TypeExpectationViolated})
		r.pass(5 * time.Minute)
		t.Equal(r.types(ch), append(opened, envelope.TypeExpectationViolated))
	})
	holds(t, "seed-002#11: after 600 s it closes", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("workflow", round(a, b), a, b)
		r.say(a, ch, "go")
		opened := r.types(ch)
		r.pass(599 * time.Second)
		t.Equal(r.channel(ch).State, channel.Active)
		r.pass(time.Second)
		m := r.channel(ch)
		t.Equal(m.State, channel.Closed)
		t.Equal(m.CloseReason, "expectation_violated:turn_within")
		t.Equal(r.types(ch), append(opened, envelope.TypeExpectationViolated, envelope.TypeClosed))
	})
	holds(t, "seed-002#87: an expectation with auto_close ends the graph", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("workflow", round(a, b), a, b)
		r.pass(11 * time.Minute)
		t.Equal(r.channel(ch).State, channel.Closed)
		_, err := r.trySay(a, ch, "too late")
		t.ErrorContains(err, "closed")
	})
	holds(t, "seed-002#88: TTL expiry ends the graph", hub.Options{ExpectationSweep: -1}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("workflow", round(a, b), a, b)
		r.pass(2*time.Hour + time.Minute)
		t.Equal(r.channel(ch).State, channel.Expired)
		_, err := r.trySay(a, ch, "too late")
		t.ErrorContains(err, "expired")
	})
	holds(t, "seed-002#6: it ends by explicit close, by TTL, and by an expectation", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.human("alice"), r.agent("bob") // a human may think for ever
		closed := r.openWith("workflow", round(a, b), a, b)
		r.end(closed, "enough")
		expired := r.openWith("workflow", round(a, b), a, b)
		violated := r.openWith("workflow", round(b, a), a, b)
		r.pass(2*time.Hour + time.Minute)
		t.Equal([]string{r.channel(closed).CloseReason, r.channel(expired).CloseReason, r.channel(violated).CloseReason},
			[]string{"enough", "ttl_expired", "expectation_violated:turn_within"})
		t.Equal([]channel.Lifecycle{r.channel(closed).State, r.channel(expired).State, r.channel(violated).State},
			[]channel.Lifecycle{channel.Closed, channel.Expired, channel.Closed})
	})
	for name, end := range map[string]struct {
		reason string
		by     func(r *rig, ch string, a, b *agent)
	}{
		"a terminate decision": {"over", func(r *rig, ch string, a, b *agent) {
			r.say(a, ch, "to b")
			r.say(b, ch, "no rule is left")
		}},
		"the last turn": {"max_turns", func(r *rig, ch string, a, b *agent) {
			r.say(a, ch, "to b")
			r.post(b, ch, envelope.TypePacket, `{"routing":{"kind":"handoff","target":"`+a.id+`"}}`)
			r.say(a, ch, "to b again")
		}},
		"an explicit close": {"enough", func(r *rig, ch string, _, _ *agent) { r.end(ch, "enough") }},
		"an expectation":    {"expectation_violated:turn_within", func(r *rig, _ string, _, _ *agent) { r.pass(11 * time.Minute) }},
		"TTL": {"ttl_expired", func(r *rig, _ string, _, _ *agent) {
			r.restart(func(o *hub.Options) { o.ExpectationSweep = -1 })
			r.pass(3 * time.Hour)
		}},
	} {
		holds(t, "seed-002#89: the closing envelope carries the reason after "+name, hub.Options{}, func(t *spec.T, r *rig) {
			a, b := r.agent("alice"), r.agent("bob")
			ch := r.openWith("workflow", knobs(fmt.Sprintf(`{"graph":{"initial_speaker":%[1]q,"transitions":[
				{"when":{"name":"from_speaker","args":{"agent_id":%[1]q}},"then":{"name":"agent","args":{"agent_id":%[2]q}}}],
				"default_target":{"name":"terminate","args":{"reason":"over"}},"max_turns":3}}`, a.id, b.id)), a, b)
			end.by(r, ch, a, b)
			log := r.log(ch)
			last := log[len(log)-1]
			t.Equal(last.Type, envelope.TypeClosed)
			t.Equal(string(last.Data), `{"reason":"`+end.reason+`","channel_id":"`+ch+`"}`)
			t.Equal(r.channel(ch).CloseReason, end.reason)
		})
	}
	runs(t, "without params a turn has 120 s", byHand, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		r.openWith("discussion", expecting("["+expectation("turn_within", "audit", `{}`)+"]"), a, b)
		r.pass(2*time.Minute - time.Millisecond)
		r.sweep()
		if got := r.fired(); len(got) != 0 {
			t.Fatalf("got %q", got)
		}
		r.pass(time.Millisecond)
		r.sweep()
		if got := r.fired(); !slices.Equal(got, []string{"turn_within [" + a.id + "]"}) {
			t.Fatalf("got %q", got)
		}
	})
	runs(t, "a human's turn waits, unless the expectation names it", byHand, func(t *testing.T, r *rig) {
		h, b := r.human("hanna"), r.agent("bob")
		list := "[" + expectation("turn_within", "audit", `{"seconds":60}`) +
			`,{"name":"turn_within","on_violation":"audit","params":{"seconds":90},"applies_to":["` + h.id + `"]}` +
			`,{"name":"turn_within","on_violation":"audit","params":{"seconds":120},"applies_to":["respondent"]}]`
		r.openWith("discussion", expecting(list), h, b)
		r.pass(80 * time.Second)
		r.sweep()
		if got := r.fired(); len(got) != 0 {
			t.Fatalf("got %q", got)
		}
		r.pass(time.Hour)
		r.sweep()
		if got := r.fired(); !slices.Equal(got, []string{"turn_within [" + h.id + "]"}) {
			t.Fatalf("got %q", got)
		}
	})
	slow := hub.Options{Adapters: []channel.Adapter{asking{}}, ExpectationSweep: time.Second}
	runs(t, "time under an open request does not count", slow, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("discussion", expecting("["+expectation("turn_within", "audit", `{"seconds":60}`)+"]"), a, b)
		r.say(a, ch, "go") // asks for half an hour
		r.pass(30*time.Minute + 59*time.Second)
		if got := r.fired(); len(got) != 0 {
			t.Fatalf("got %q", got)
		}
		r.pass(2 * time.Second)
		if got := r.fired(); !slices.Equal(got, []string{"turn_within [" + b.id + "]"}) {
			t.Fatalf("got %q", got)
		}
	})
	runs(t, "time in which the speaker waits for an answer does not count, also across restarts", hub.Options{SnapshotAfter: 4, ExpectationSweep: time.Second}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.human("bob")
		ch := r.openWith("discussion", expecting("["+expectation("turn_within", "audit", `{"seconds":60}`)+"]"), a, b)
		ask := func(who *agent) hub.Request {
			t.Helper()
			return r.ask(who, ch)
		}
		answer := func(q hub.Request) {
			t.Helper()
			if _, err := r.Answer(ctx, q.ID, hub.Answer{Choice: "approve"}, nil); err != nil {
				t.Fatal(err)
			}
		}
		r.pass(30 * time.Second)
		first := ask(a)
		r.pass(10 * time.Minute)
		second := ask(a)
		r.restart()
		r.pass(10 * time.Minute)
		answer(first)
		r.pass(10 * time.Minute)
		answer(second) // the two overlap
		r.restart()
		r.pass(10 * time.Second)
		third := ask(a)
		r.pass(time.Hour)
		answer(third)
		ask(b) // it is not b's turn
		r.pass(15 * time.Second)
		if got := r.fired(); len(got) != 0 {
			t.Fatalf("got %q after 55 s of its own", got)
		}
		r.pass(10 * time.Second)
		if got := r.fired(); !slices.Equal(got, []string{"turn_within [" + a.id + "]"}) {
			t.Fatalf("got %q after 65 s of its own", got)
		}
	})
	runs(t, "a nil evaluator switches it off", hub.Options{Evaluators: map[string]hub.Evaluator{"turn_within": nil}}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("workflow", round(a, b), a, b)
		r.pass(time.Hour)
		if m := r.channel(ch); m.State != channel.Active || len(r.fired()) != 0 {
			t.Fatalf("%v, fired %q", m.State, r.fired())
		}
	})
}

// claiming is a conversation in which only one channel may say "mine".
type claiming struct{ conversation.Adapter }

func (claiming) OnAccepted(_ *channel.Metadata, _ channel.State, e *envelope.Envelope) (fx channel.Effects) {
	if string(e.Data) == `{"text":"mine"}` {
		fx.Claims = []string{"it"}
	}
	return fx
}

// asking is a discussion in which every text asks somebody else for half an
// hour.
type asking struct{ discussion.Adapter }

func (asking) Paused(m *channel.Metadata, _ channel.State, now time.Time) time.Duration {
	return min(now.Sub(m.CreatedAt), 30*time.Minute)
}
