package workflow_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

func contextSet(name, data string) *envelope.Envelope {
	return adaptertest.Envelope(id(name), envelope.TypeContextSet, data)
}

func packet(name, updates string) *envelope.Envelope {
	return adaptertest.Envelope(id(name), envelope.TypePacket, `{"routing":{"kind":"text"},"context_updates":`+updates+`,"body":"b"}`)
}

func TestContext(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-channels#67: non-participant EV_CONTEXT_SET refused", func(t *spec.T) {
		p := open(t, ring, "alice", "bob")
		err := p.Post(contextSet("eve", `{"set":{"k":1}}`))
		t.ErrorContains(err, "only accepts EV_CONTEXT_SET from participants", "'agt-eve'")
		t.Equal(fault.CodeOf(err), fault.Protocol)
		t.Equal(vars(t, p), `{}`)
	})
	spec.Check(t, "ag2-channels#70 seed-002#60: set merges", func(t *spec.T) {
		p := open(t, ring, "alice", "bob")
		t.NoError(p.Post(contextSet("alice", `{"set":{"a":1,"b":{"x":[1,2]}}}`)))
		t.NoError(p.Post(contextSet("alice", `{"set":{"b":null,"c":123456789012345678901234567890}}`)))
		t.Equal(vars(t, p), `{"a":1,"b":null,"c":123456789012345678901234567890}`)
	})
	spec.Check(t, "ag2-channels#71: delete then set in one envelope", func(t *spec.T) {
		p := open(t, ring, "alice", "bob")
		t.NoError(p.Post(contextSet("alice", `{"set":{"a":1,"b":2}}`)))
		t.NoError(p.Post(contextSet("alice", `{"set":{"b":3},"delete":["a","b","unset"]}`)))
		t.Equal(vars(t, p), `{"b":3}`)
	})
	spec.Check(t, "ag2-channels#72 seed-002#108: out-of-turn participant may write", func(t *spec.T) {
		p := open(t, ring, "alice", "bob", "carol")
		t.ErrorContains(p.Say(id("carol")), "expects 'agt-alice'")
		t.NoError(p.Post(contextSet("carol", `{"set":{"k":true}}`)))
		t.Equal(vars(t, p), `{"k":true}`)
	})
	spec.Check(t, "seed-002#111: any participant may delete a key", func(t *spec.T) {
		p := open(t, ring, "alice", "bob", "carol")
		t.NoError(p.Post(contextSet("alice", `{"set":{"k":true,"l":1}}`)))
		t.NoError(p.Post(contextSet("carol", `{"delete":["k"]}`)))
		t.Equal(vars(t, p), `{"l":1}`)
	})
	spec.Check(t, "ag2-channels#73 seed-002#109: count and speaker unchanged", func(t *spec.T) {
		p := open(t, ring, "alice", "bob")
		play(t, p, "alice T -> bob")
		before := state(p).Facts
		t.NoError(p.Post(contextSet("alice", `{"set":{"k":1}}`)))
		after := state(p).Facts
		t.Equal(vars(t, p), `{"k":1}`)
		after.Vars = before.Vars
		t.Equal(after, before)
		t.Equal(adapter.OnAccepted(p.Meta, p.State, p.Log[1]), channel.Effects{})
	})
	spec.Check(t, "ag2-channels#74 seed-002#63: context_equals reroutes the next substantive turn", func(t *spec.T) {
		g := graph("a", to("b"), 0, rule(is("urgent", "true"), to("c")))
		play(t, open(t, g, "a", "b", "c"), "a T -> b")
		play(t, open(t, g, "a", "b", "c"), `
			a C {"urgent":true} -> a
			a T -> c`)
	})
	spec.Check(t, "seed-002#110: an observer's context is seen by the next packet", func(t *spec.T) {
		// a is in the middle of its round; c only watches.
		g := graph("a", to("b"), 0, rule(is("stop", "true"), end("stopped")))
		play(t, open(t, g, "a", "b", "c"), `
			c C {"stop":true} -> a
			a P -> closed stopped`)
	})
	spec.Check(t, "seed-002#100: the packet's rules see what the tool has set", func(t *spec.T) {
		g := graph("a", to("b"), 0, rule(is("n", "9007199254740993"), to("c")))
		play(t, open(t, g, "a", "b", "c"), `
			a C {"n":9007199254740993} -> a
			a P -> c`)
		play(t, open(t, g, "a", "b", "c"), `
			a C {"n":9007199254740992} -> a
			a P -> b`)
	})
	spec.Check(t, "ag2-channels#62 seed-000#27: a packet's updates count in its own fold", func(t *spec.T) {
		p := open(t, graph("a", to("b"), 0, rule(is("k", `"v"`), to("c"))), "a", "b", "c")
		t.NoError(p.Post(packet("a", `{"set":{"k":"v"},"delete":[]}`)))
		t.Equal(standing(p), "c")
		t.Equal(vars(t, p), `{"k":"v"}`)
	})
	spec.Check(t, "ag2-channels#63 seed-002#62: a deleted key matches null in the same fold", func(t *spec.T) {
		g := graph("a", to("b"), 0, rule(is("k", `null`), to("c")))
		p := open(t, g, "a", "b", "c")
		t.NoError(p.Post(contextSet("a", `{"set":{"k":"v"}}`)))
		t.NoError(p.Post(packet("a", `{"delete":["k"]}`)))
		t.Equal(standing(p), "c")
		t.Equal(vars(t, p), `{}`)
		play(t, open(t, g, "a", "b", "c"), "a T -> c") // never set
	})
	spec.Check(t, "ag2-channels#64: empty updates leave context untouched", func(t *spec.T) {
		for _, updates := range []string{`{"set":{},"delete":[]}`, `{}`, `null`, `{"set":null,"delete":null}`} {
			p := open(t, ring, "alice", "bob")
			t.NoError(p.Post(contextSet("alice", `{"set":{"k":1}}`)))
			t.NoError(p.Post(packet("alice", updates)))
			t.Equal(vars(t, p), `{"k":1}`)
			t.Equal(standing(p), "bob")
		}
	})
	spec.Check(t, "seed-002#61: ContextEquals on a key that was never set compares null", func(t *spec.T) {
		for _, value := range []string{`true`, `0`, `""`, `false`, `[]`, `{}`} {
			play(t, open(t, graph("a", to("b"), 0, rule(is("k", value), to("c"))), "a", "b", "c"), "a T -> b")
		}
	})
	t.Run("malformed", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		for fragment, data := range map[string]string{"set must be an object": `{"set":[1]}`, "delete must be an array": `{"delete":{"a":1}}`} {
			p := open(c, ring, "alice", "bob")
			err := p.Post(contextSet("alice", data))
			c.ErrorContains(err, "EV_CONTEXT_SET", fragment)
			c.Equal(fault.CodeOf(err), fault.Protocol)
			// An update that is in a log already does not stop a fold.
			c.Equal(adaptertest.StateJSON(adapter, adapter.Fold(p.State, contextSet("alice", data))), p.JSON())
		}
	})
	t.Run("malformed in a packet", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		for fragment, data := range map[string]string{
			"context_updates: graph: set must be an object":     `{"context_updates":{"set":[1]}}`,
			"context_updates: graph: delete must be an array":   `{"context_updates":{"delete":"k"}}`,
			"context_updates: graph: wanted an object, got":     `{"context_updates":["k"]}`,
			"routing: graph: target must be a string, not a nu": `{"routing":{"kind":"handoff","target":7}}`,
			"routing: graph: kind must be a string, not an arr": `{"routing":{"kind":["finish"],"tool":7}}`,
			"routing: graph: wanted an object, got a string":    `{"routing":"handoff"}`,
			"routing: graph: wanted an object, got an array":    `{"context_updates":null,"routing":[],"body":"b"}`,
			"context_updates: graph: delete must list keys as ": `{"routing":null,"context_updates":{"set":{},"delete":[{}]}}`,
		} {
			p := open(c, ring, "alice", "bob")
			before := p.JSON()
			post := adaptertest.Envelope(id("alice"), envelope.TypePacket, data)
			err := p.Post(post)
			c.ErrorContains(err, "EV_PACKET", fragment)
			c.Equal(fault.CodeOf(err), fault.Protocol)
			c.Equal(p.JSON(), before)
			// A packet that is in a log already is a turn whose readable parts
			// count.
			c.Equal(adaptertest.StateJSON(adapter, adapter.Fold(p.State, post)) != before, true)
		}
	})
	t.Run("bounded to the byte", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		small := workflow.New(workflow.Options{MaxContext: 10})
		full := `{"set":{"k":"` + strings.Repeat("x", 7) + `"}}` // one for the key, nine for the value
		over := `{"set":{"k":"` + strings.Repeat("x", 8) + `"}}`
		start := func(limited workflow.Adapter) *adaptertest.Play {
			p, err := adaptertest.Open(limited, adaptertest.Metadata(limited, knobs(ring), ids("alice", "bob")...))
			c.NoError(err)
			return p
		}
		p := start(small)
		c.NoError(p.Post(contextSet("bob", full)))
		c.Equal(state(p).Facts.Vars.Size(), 10)
		c.ErrorContains(start(small).Post(contextSet("bob", over)), "at most 10 bytes", "make it 11")
		c.NoError(p.Post(contextSet("bob", full))) // no larger than before
		// Variables that already exceed the limit, for example because it was
		// lowered, may shrink or stay.
		p = start(workflow.New(workflow.Options{MaxContext: 100}))
		c.NoError(p.Post(contextSet("bob", `{"set":{"k":"`+strings.Repeat("x", 20)+`"}}`)))
		p.Adapter = small
		c.NoError(p.Post(contextSet("bob", `{"set":{"k":"`+strings.Repeat("y", 20)+`"}}`)))
		c.ErrorContains(p.Post(contextSet("bob", `{"set":{"k":"`+strings.Repeat("y", 21)+`"}}`)), "at most 10 bytes")
		c.NoError(p.Post(packet("alice", `{"delete":["k"]}`)))
		c.Equal(state(p).Facts.Vars.Len(), 0)
		// Without a configured limit there is a default.
		p = start(workflow.New(workflow.Options{}))
		c.ErrorContains(p.Post(contextSet("bob", `{"set":{"k":"`+strings.Repeat("x", workflow.DefaultMaxContext)+`"}}`)), "at most 1048576 bytes")
	})
	t.Run("bounded", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		small := workflow.New(workflow.Options{MaxContext: 64})
		p, err := adaptertest.Open(small, adaptertest.Metadata(small, knobs(ring), ids("alice", "bob")...))
		c.NoError(err)
		c.NoError(p.Post(contextSet("bob", `{"set":{"k":"`+strings.Repeat("x", 50)+`"}}`)))
		c.ErrorContains(p.Post(contextSet("bob", `{"set":{"l":"`+strings.Repeat("x", 50)+`"}}`)), "at most 64 bytes")
		c.ErrorContains(p.Post(packet("alice", `{"set":{"l":"`+strings.Repeat("x", 50)+`"}}`)), "at most 64 bytes")
		c.NoError(p.Post(contextSet("bob", `{"delete":["k"],"set":{"l":"`+strings.Repeat("y", 50)+`"}}`)))
		// One for the key, two for the quotes.
		begin := func(size int) error {
			knobs := strings.TrimSuffix(knobs(ring), "}") + `,"context_vars":{"k":"` + strings.Repeat("x", size-3) + `"}}`
			return small.ValidateCreate(adaptertest.Metadata(small, knobs, ids("alice", "bob")...))
		}
		c.NoError(begin(64))
		c.ErrorContains(begin(65), "at most 64 bytes", "not 65")
	})
}

func TestContextRouting(t *testing.T) {
	t.Parallel()
	// The rule that ends on-call's turn precedes the sticky one.
	flag := graph("in", end("x"), 8,
		rule(from("in"), to("tri")), rule(from("call"), end("paged")), rule(is("urgent", "true"), to("call")), rule(from("tri"), to("rev")))
	spec.Check(t, "seed-002#64: the flag sends the turn to on-call, which then ends it", func(t *spec.T) {
		play(t, open(t, flag, "in", "tri", "call", "rev"), `
			in T -> tri
			tri C {"urgent":true} -> tri
			tri P -> call
			call P -> closed paged`)
	})
	spec.Check(t, "seed-002#65: without the flag the reviewer speaks next", func(t *spec.T) {
		play(t, open(t, flag, "in", "tri", "call", "rev"), `
			in T -> tri
			tri P -> rev`)
	})
	branches := graph("triage", end("x"), 0,
		rule(is("domain", `"security"`), to("security")), rule(is("domain", `"billing"`), to("billing")), rule(from("triage"), to("generic")))
	spec.Check(t, "seed-002#66: a value of the key routes to its own agent", func(t *spec.T) {
		play(t, open(t, branches, "triage", "security", "billing", "generic"), `
			triage C {"domain":"security"} -> triage
			triage P -> security`)
	})
	spec.Check(t, "seed-002#67: without the key the generic rule decides", func(t *spec.T) {
		play(t, open(t, branches, "triage", "security", "billing", "generic"), "triage P -> generic")
	})
	conjunction := graph("alice", end("x"), 0, rule(is("escalate", "true"), to("boss")), rule(from("alice"), to("bob")))
	spec.Check(t, "seed-002#68: with the flag set the first rule is taken", func(t *spec.T) {
		play(t, open(t, conjunction, "alice", "bob", "boss"), `
			alice C {"escalate":true} -> alice
			alice P -> boss`)
	})
	spec.Check(t, "seed-002#69: without the flag the second rule is taken", func(t *spec.T) {
		play(t, open(t, conjunction, "alice", "bob", "boss"), "alice P -> bob")
	})
	sticky := graph("in", to("other"), 5, rule(is("route", `"security"`), to("security")))
	spec.Check(t, "seed-002#71 seed-002#72: context_equals fires as long as the key keeps its value", func(t *spec.T) {
		play(t, open(t, sticky, "in", "security", "other"), `
			in C {"route":"security"} -> in
			in T -> security
			security P -> security
			security P -> security
			security P -> security
			security P -> closed max_turns`)
	})
	spec.Check(t, "seed-002#73: an earlier from_speaker rule ends the loop", func(t *spec.T) {
		g := graph("in", to("other"), 5, rule(from("security"), end("secured")), rule(is("route", `"security"`), to("security")))
		play(t, open(t, g, "in", "security", "other"), `
			in C {"route":"security"} -> in
			in T -> security
			security P -> closed secured`)
	})
	spec.Check(t, "seed-002#74: deleting the key ends the loop", func(t *spec.T) {
		p := open(t, sticky, "in", "security", "other")
		play(t, p, `
			in C {"route":"security"} -> in
			in T -> security`)
		t.NoError(p.Post(contextSet("security", `{"delete":["route"]}`)))
		t.Equal(standing(p), "security")
		play(t, p, "security P -> other")
	})
	t.Run("the sticky trap of the flag", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		g := graph("in", end("x"), 4,
			rule(from("in"), to("tri")), rule(is("urgent", "true"), to("call")), rule(from("tri"), to("rev")), rule(from("call"), end("paged")))
		play(c, open(c, g, "in", "tri", "call", "rev"), `
			in T -> tri
			tri C {"urgent":true} -> tri
			tri P -> call
			call P -> call
			call P -> closed max_turns`)
	})
	t.Run("topics", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		g := graph("sorter", end("x"), 0, rule(from("bugs"), end("bugs_done")), rule(is("topic", `"bugs"`), to("bugs")), rule(from("sorter"), to("misc")))
		p := open(c, g, "sorter", "bugs", "misc")
		play(c, p, `sorter C {"topic":"bugs"} -> sorter`) // a silent round ends here and stalls
		play(c, p, `
			sorter P -> bugs
			bugs P -> closed bugs_done`)
	})
}

func TestEvaluation(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-002#13: bookkeeping advances before conditions are evaluated", func(t *spec.T) {
		// round_robin continues after the last speaker, which is the sender
		// only after the bookkeeping.
		p := open(t, ring, "alice", "bob", "carol")
		play(t, p, "alice T -> bob\nbob P -> carol")
		t.Equal(state(p).Facts.LastSpeaker, id("bob"))
		t.Equal(state(p).Facts.LastEnvelope, p.Log[1].ID)
		t.Equal(state(p).Facts.Turns, 2)
	})
	spec.Check(t, "seed-002#15: when no transition matches, default_target is resolved", func(t *spec.T) {
		play(t, open(t, graph("a", to("c"), 0, rule(from("b"), end("x"))), "a", "b", "c"), "a T -> c")
	})
	spec.Check(t, "seed-002#17: a decision sets the expected speaker", func(t *spec.T) {
		p := open(t, graph("a", end("x"), 0, rule(from("a"), to("c"))), "a", "b", "c")
		play(t, p, "a T -> c")
		t.Contains(p.JSON(), `"expected_next_speaker":"agt-c"`)
	})
	spec.Check(t, "seed-002#37: transitions are evaluated by ascending priority", func(t *spec.T) {
		g := `{"initial_speaker":"@a","transitions":[
			{"when":{"name":"always"},"then":{"name":"agent","args":{"agent_id":"@p"}},"priority":10},
			{"when":{"name":"always"},"then":{"name":"agent","args":{"agent_id":"@q"}},"priority":1}]}`
		play(t, open(t, g, "a", "p", "q"), "a T -> q")
	})
	spec.Check(t, "seed-002#38: equal priorities are checked in list order", func(t *spec.T) {
		g := `{"initial_speaker":"@a","transitions":[
			{"when":{"name":"always"},"then":{"name":"agent","args":{"agent_id":"@p"}},"priority":3},
			{"when":{"name":"always"},"then":{"name":"agent","args":{"agent_id":"@q"}},"priority":3}]}`
		play(t, open(t, g, "a", "p", "q"), "a T -> p")
	})
	spec.Check(t, "seed-002#93: each fold works from its own graph_data", func(t *spec.T) {
		one := open(t, graph("a", to("b"), 0), "a", "b", "c")
		two := open(t, graph("a", to("c"), 0), "a", "b", "c")
		play(t, one, "a T -> b")
		play(t, two, "a T -> c")
		play(t, one, "b T -> b")
		play(t, two, "c T -> c")
		t.Contains(one.JSON(), `"graph_data":{"initial_speaker":"agt-a","transitions":[],"default_target":{"name":"agent","args":{"agent_id":"agt-b"}},"max_turns":null}`)
		// A state that was only decoded works from its graph_data alone.
		again, err := adapter.Codec().Decode([]byte(one.JSON()))
		t.NoError(err)
		one.State = again
		play(t, one, "b T -> b")
	})
	spec.Check(t, "seed-002#94: folding the same log twice gives equal states", func(t *spec.T) {
		p := open(t, queue, "triage", "digger", "scribe")
		play(t, p, `
			triage C {"job":"dig"} -> triage
			triage P -> digger
			digger P -> triage`)
		for range 2 {
			s, err := adaptertest.Replay(workflow.New(workflow.Options{}), p.Meta, p.Log)
			t.NoError(err)
			t.Equal(adaptertest.StateJSON(adapter, s), p.JSON())
		}
		s, err := adapter.Initial(p.Meta)
		t.NoError(err)
		for _, e := range p.Log {
			before := adaptertest.StateJSON(adapter, s)
			next := adapter.Fold(s, e)
			t.Equal(adaptertest.StateJSON(adapter, s), before)
			s = next
		}
	})
}
