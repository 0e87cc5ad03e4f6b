package hub_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter/conversation"
	"github.com/parley-hub/parley/adapter/discussion"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
)

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
		a, b := r.human("alice"), r.agent("bob") // a human has no time limit
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
		r.say(a, ch, "go") // the turn is paused for half an hour
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

// asking is a discussion whose turns are paused by a request for its first half
// hour.
type asking struct{ discussion.Adapter }

func (asking) Paused(m *channel.Metadata, _ channel.State, now time.Time) time.Duration {
	return min(now.Sub(m.CreatedAt), 30*time.Minute)
}
