package workflow_test

import (
	"testing"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

var ring = graph("alice", end("never"), 0, rule(node("always", "{}"), node("round_robin", "{}")))

func TestTurns(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-channels#52 seed-002#3: round robin goes around and refuses who is out of turn", func(t *spec.T) {
		p := open(t, ring, "alice", "bob", "carol")
		for _, early := range []string{"bob", "carol", "stranger"} {
			err := p.Say(id(early))
			t.ErrorContains(err, "expects 'agt-alice' to speak", "'agt-"+early+"'")
			t.Equal(fault.CodeOf(err), fault.Protocol)
		}
		play(t, p, `
			alice T -> bob
			bob T -> carol
			carol T -> alice`)
		t.Equal(state(p).Facts.Turns, 3)
		t.ErrorContains(p.Post(parse(t, "bob P")), "expects 'agt-alice' to speak")
	})
	spec.Check(t, "seed-002#82: the creator's first send is turn 1", func(t *spec.T) {
		p := open(t, ring, "alice", "bob")
		t.NoError(p.Say(id("alice")))
		t.Equal(state(p).Facts.Turns, 1)
	})
	spec.Check(t, "ag2-channels#66: text and packet both advance", func(t *spec.T) {
		p := open(t, ring, "alice", "bob")
		play(t, p, `
			alice T -> bob
			bob P -> alice`)
		t.Equal(state(p).Facts.Turns, 2)
		t.Equal(state(p).Facts.LastEnvelope, p.Log[1].ID)
	})
	spec.Check(t, "ag2-channels#66: custom types do not", func(t *spec.T) {
		p := open(t, ring, "alice", "bob")
		before := p.State
		t.NoError(p.Post(adaptertest.Envelope(id("bob"), "app.review", `{"text":"x","body":"y"}`)))
		t.True(p.State == before, "the state is the same")
	})
	spec.Check(t, "seed-000#24: workflow folds texts", func(t *spec.T) {
		p := open(t, ring, "alice", "bob")
		play(t, p, "alice T -> bob")
		t.Equal(state(p).Facts.LastSpeaker, id("alice"))
	})
	spec.Check(t, "seed-000#25: workflow folds packets", func(t *spec.T) {
		p := open(t, ring, "alice", "bob")
		play(t, p, "alice P -> bob")
		t.Equal(state(p).Facts.Turns, 1)
	})
	spec.Check(t, "seed-002#19: only texts and packets walk the transitions", func(t *spec.T) {
		p := open(t, graph("alice", end("walked"), 0), "alice", "bob")
		for _, eventType := range []string{
			"app.custom", envelope.TypeTaskStarted, envelope.TypeOpened, envelope.TypeExpectationViolated, envelope.TypeContextSet,
		} {
			t.NoError(p.Post(adaptertest.Envelope(id("alice"), eventType, `{}`)))
			t.Equal(standing(p), "alice")
		}
		play(t, p, "alice T -> closed walked")
	})
	spec.Check(t, "seed-000#23: a packet without routing, updates or body still is a turn", func(t *spec.T) {
		for _, data := range []string{`{}`, `{"routing":null,"context_updates":null,"body":null}`, `{"routing":{"kind":"handoff","tool":"t","reason":"r"},"context_updates":{"set":{"k":1},"delete":[]},"body":"b"}`} {
			p := open(t, ring, "alice", "bob")
			t.NoError(p.Post(adaptertest.Envelope(id("alice"), envelope.TypePacket, data)))
			t.Equal(standing(p), "bob")
		}
	})
	t.Run("nobody speaks once the graph has ended", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := open(c, graph("alice", end("x"), 0), "alice", "bob")
		play(c, p, "alice T -> closed x")
		for _, name := range []string{"alice", "bob"} {
			err := adapter.ValidateSend(p.Meta, p.State, adaptertest.Text(id(name), "x"))
			c.ErrorContains(err, "expects nobody", "'agt-"+name+"'")
			c.Equal(fault.CodeOf(err), fault.Protocol)
		}
	})
	t.Run("an empty speaker lets anyone speak", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := open(c, graph("alice", node("agent", `{"agent_id":""}`), 0), "alice", "bob")
		play(c, p, "alice T -> ")
		_, expected := adapter.Expected(p.Meta, p.State)
		c.False(expected, "someone in particular is expected")
		c.Equal(p.Closed, "")
		c.NoError(p.Say(id("bob")))
	})
}

func TestEnds(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-channels#53 seed-002#26: sequence_complete wins over the cap on the same turn", func(t *spec.T) {
		p := open(t, sequence(t, "a", "b", "c"), "a", "b", "c")
		turns, capped := state(p).Graph.MaxTurns()
		t.Equal(turns, 3)
		t.True(capped, "the cap fires on the same turn")
		play(t, p, `
			a T -> b
			b T -> c
			c T -> closed sequence_complete`)
		t.Equal(state(p).Facts.Turns, 3)
	})
	spec.Check(t, "seed-002#24: turn and next speaker", func(t *spec.T) {
		p := open(t, sequence(t, "a", "b", "c"), "a", "b", "c")
		play(t, p, "a T -> b")
		t.Equal(state(p).Facts.Turns, 1)
		t.Equal(adapter.Recipients(p.Meta, p.State, p.Meta.Members(), p.Log[0]), ids("b", "c"))
	})
	spec.Check(t, "seed-002#25: turn and next speaker", func(t *spec.T) {
		p := open(t, sequence(t, "a", "b", "c"), "a", "b", "c")
		play(t, p, "a T -> b\nb T -> c")
		t.Equal(state(p).Facts.Turns, 2)
		t.Equal(adapter.Recipients(p.Meta, p.State, p.Meta.Members(), p.Log[1]), ids("a", "c"))
	})
	spec.Check(t, "ag2-channels#54 seed-002#5: round_robin with cap 6 closes max_turns after six turns", func(t *spec.T) {
		p := open(t, graph("a", end("never"), 6, rule(node("always", "{}"), node("round_robin", "{}"))), "a", "b", "c")
		play(t, p, `
			a T -> b
			b T -> c
			c T -> a
			a T -> b
			b T -> c
			c T -> closed max_turns`)
		// The next speaker stays in the state, because the cap ended the channel.
		t.Equal(state(p).Facts.Expected, id("a"))
		t.Equal(state(p).Facts.Closing, "")
	})
	spec.Check(t, "ag2-channels#55: explicit terminate reason beats the cap", func(t *spec.T) {
		p := open(t, graph("a", to("a"), 1, rule(from("a"), end("done_here"))), "a", "b")
		play(t, p, "a T -> closed done_here")
	})
	spec.Check(t, "seed-002#84: a fired terminate closes with its reason", func(t *spec.T) {
		p := open(t, graph("a", to("a"), 0, rule(from("a"), end("done_here"))), "a", "b")
		play(t, p, "a T -> closed done_here")
		t.Equal(adapter.OnAccepted(p.Meta, p.State, p.Log[0]), channel.Effects{Next: channel.Closed, Reason: "done_here"})
	})
	spec.Check(t, "ag2-channels#56: without a terminate the reason is max_turns", func(t *spec.T) {
		p := open(t, graph("a", end("default"), 1, rule(from("a"), to("b"))), "a", "b")
		play(t, p, "a T -> closed max_turns")
	})
	spec.Check(t, "seed-002#85: a terminate decision at the cap closes with its own reason", func(t *spec.T) {
		play(t, open(t, graph("a", end("by_default"), 1), "a", "b"), "a T -> closed by_default")
		play(t, open(t, graph("a", to("b"), 1, rule(from("a"), end("by_rule"))), "a", "b"), "a T -> closed by_rule")
	})
	spec.Check(t, "seed-002#85: any other outcome closes with max_turns", func(t *spec.T) {
		play(t, open(t, graph("a", to("b"), 1), "a", "b"), "a T -> closed max_turns")
		play(t, open(t, graph("a", end("x"), 1, rule(from("a"), to("b"))), "a", "b"), "a T -> closed max_turns")
		play(t, open(t, graph("a", end("x"), 1), "a", "b"), "a H ask b -> closed max_turns")
	})
	spec.Check(t, "seed-002#4: the channel closes when the graph terminates", func(t *spec.T) {
		play(t, open(t, graph("a", to("b"), 0, rule(from("b"), end("over"))), "a", "b"), "a T -> b\nb T -> closed over")
	})
	spec.Check(t, "seed-002#18: a decision without a speaker closes with its reason", func(t *spec.T) {
		p := open(t, graph("a", end("enough"), 0), "a", "b")
		play(t, p, "a T -> closed enough")
		t.Equal(adapter.OnAccepted(p.Meta, p.State, p.Log[0]), channel.Effects{Next: channel.Closed, Reason: "enough"})
	})
	spec.Check(t, "seed-002#92: no expected speaker means the channel is to end", func(t *spec.T) {
		p := open(t, graph("a", end("x"), 0), "a", "b")
		e := adaptertest.Text(id("a"), "x")
		e.ID = "e1"
		s := &workflow.State{Graph: state(p).Graph, Facts: state(p).Facts}
		s.Facts.LastEnvelope = "e1"
		t.Equal(adapter.OnAccepted(p.Meta, s, e), channel.Effects{})
		s.Facts.Ended = true
		t.Equal(adapter.OnAccepted(p.Meta, s, e), channel.Effects{Next: channel.Closed, Reason: "workflow_terminated"})
		s.Facts.Closing = "why"
		t.Equal(adapter.OnAccepted(p.Meta, s, e), channel.Effects{Next: channel.Closed, Reason: "why"})
		t.Contains(adaptertest.StateJSON(adapter, s), `"expected_next_speaker":null`)
	})
	t.Run("a cap of none closes at once", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p, err := adaptertest.Open(adapter, adaptertest.Metadata(adapter,
			`{"graph":{"initial_speaker":"agt-a","default_target":{"name":"stay"},"max_turns":0}}`, ids("a", "b")...))
		c.NoError(err)
		play(c, p, "a T -> closed max_turns")
	})
	t.Run("nobody left to rotate to", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := open(c, ring, "alice", "bob")
		s := *state(p)
		s.Facts.Order = nil
		p.State = &s
		play(c, p, "alice T -> closed no_participants")
	})
}

func TestRouting(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-channels#57 seed-002#56: a static handoff goes to the tool's target, then reverts", func(t *spec.T) {
		p := open(t, graph("triage", end("x"), 0, rule(called("ring"), end("another tool")), rule(called("page"), to("oncall")), rule(from("oncall"), node("revert_to_initiator", "{}"))), "triage", "oncall")
		play(t, p, `
			triage S page -> oncall
			oncall T -> triage`)
	})
	spec.Check(t, "seed-000#26: routing is matched while the packet is folded", func(t *spec.T) {
		g := graph("triage", end("unmatched"), 0, rule(called("page"), to("oncall")))
		play(t, open(t, g, "triage", "oncall"), "triage S page -> oncall")
		play(t, open(t, g, "triage", "oncall"), "triage S ring -> closed unmatched")
	})
	spec.Check(t, "ag2-channels#58: the manager pattern plays its sequence", func(t *spec.T) {
		g := graph("mgr", node("revert_to_initiator", "{}"), 0, rule(called("ask_a"), to("a")), rule(called("ask_b"), to("b")))
		play(t, open(t, g, "mgr", "a", "b"), `
			mgr S ask_a -> a
			a T -> mgr
			mgr S ask_b -> b
			b T -> mgr`)
	})
	spec.Check(t, "ag2-channels#59: a finish packet closes with its reason", func(t *spec.T) {
		p := open(t, ring, "alice", "bob")
		play(t, p, "alice F all_sold -> closed all_sold")
		t.True(state(p).Facts.Ended, "the speaker is null")
		t.Equal(state(p).Facts.Closing, "all_sold")
		t.Contains(p.JSON(), `"expected_next_speaker":null`, `"pending_close_reason":"all_sold"`)
	})
	for _, routing := range []string{`{"kind":"finish","tool":"f"}`, `{"kind":"finish","tool":"f","reason":""}`} {
		spec.Check(t, "ag2-channels#60: a finish without a reason is finished", func(t *spec.T) {
			p := open(t, ring, "alice", "bob")
			t.NoError(p.Post(adaptertest.Envelope(id("alice"), envelope.TypePacket, `{"routing":`+routing+`}`)))
			t.Equal(p.Closed, "finished")
		})
	}
	spec.Check(t, "ag2-channels#61 seed-002#58: dynamic target beats a matching tool_called rule", func(t *spec.T) {
		g := graph("a", end("x"), 0, rule(called("pick"), to("b")))
		play(t, open(t, g, "a", "b", "c"), "a H pick c -> c")
		play(t, open(t, g, "a", "b", "c"), "a S pick -> b")
	})
	spec.Check(t, "seed-002#59: a packet with routing.target makes that agent the next speaker", func(t *spec.T) {
		play(t, open(t, graph("a", end("default"), 0, rule(node("always", "{}"), end("rule"))), "a", "b", "c"), "a H any c -> c")
	})
	t.Run("only a handoff's target counts", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		for _, routing := range []string{`{"kind":"text","target":"agt-c"}`, `{"target":"agt-c"}`, `{"kind":"handoff","target":""}`, `{"kind":"handoff","target":null}`} {
			p := open(c, graph("a", to("b"), 0), "a", "b", "c")
			c.NoError(p.Post(adaptertest.Envelope(id("a"), envelope.TypePacket, `{"routing":`+routing+`}`)))
			c.Equal(standing(p), "b")
		}
	})
	t.Run("a target is taken verbatim", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := open(c, ring, "alice", "bob")
		c.NoError(p.Post(adaptertest.Envelope(id("alice"), envelope.TypePacket, `{"routing":{"kind":"handoff","target":"Some Name"}}`)))
		c.ErrorContains(p.Say(id("bob")), "expects 'Some Name' to speak")
	})
	spec.Check(t, "ag2-channels#69: the module-level constructor gives the same result", func(t *spec.T) {
		by := turn.Packet{Handoff: &turn.Handoff{Target: id("bob"), Reason: "yours"}, Context: map[string]any{"k": 1}}
		method, err := adapter.BuildPacket("channel-1", id("alice"), "hi", by)
		t.NoError(err)
		function, err := turn.BuildPacket("channel-1", id("alice"), "hi", by)
		t.NoError(err)
		t.Equal(method, function)
		t.Equal(string(method.Data), `{"body":"hi","routing":{"kind":"handoff","target":"agt-bob","reason":"yours"},"context":{"k":1},"context_updates":{"set":{"k":1},"delete":[]}}`)
	})
}
