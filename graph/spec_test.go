package graph_test

import (
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/graph"
)

var trio = []string{"a", "b", "c"}

func TestSpecTargets(t *testing.T) {
	t.Parallel()
	said := graph.Facts{Order: trio, Creator: "b", LastSpeaker: "c", Turns: 4}
	spec.Check(t, "ag2-channels#31 seed-002#39: agent target returns its id", func(t *spec.T) {
		t.Equal(resolve(to("b"), said, text("c")), graph.Decision{Speaker: "b"})
		t.Equal(resolve(to("who-else"), said, text("c")), graph.Decision{Speaker: "who-else"})
	})
	spec.Check(t, "ag2-channels#32 seed-002#40: it advances", func(t *spec.T) {
		for speaker, next := range map[string]string{"b": "a", "a": "c"} {
			f := graph.Facts{Order: []string{"b", "a", "c"}, Creator: "c", LastSpeaker: speaker}
			t.Equal(resolve(graph.RoundRobin{}, f, text(speaker)), graph.Decision{Speaker: next})
		}
	})
	spec.Check(t, "ag2-channels#32 seed-002#40: it wraps", func(t *spec.T) {
		t.Equal(resolve(graph.RoundRobin{}, said, text("c")), graph.Decision{Speaker: "a"})
	})
	spec.Check(t, "ag2-channels#33: round_robin of nobody ends with no_participants", func(t *spec.T) {
		t.Equal(resolve(graph.RoundRobin{}, graph.Facts{LastSpeaker: "a"}, text("a")),
			graph.Decision{End: true, Reason: "no_participants"})
	})
	spec.Check(t, "ag2-channels#34 seed-002#41: stay keeps the last speaker", func(t *spec.T) {
		t.Equal(resolve(graph.Stay{}, said, text("c")), graph.Decision{Speaker: "c"})
		t.Equal(resolve(graph.Stay{}, said, text("a")), graph.Decision{Speaker: "c"}) // the sender of this one
	})
	spec.Check(t, "ag2-channels#35 seed-002#42: revert returns creator_id", func(t *spec.T) {
		t.Equal(resolve(graph.RevertToInitiator{}, said, text("c")), graph.Decision{Speaker: "b"})
		g := build(t, rules("a", rule(graph.Always{}, graph.RevertToInitiator{})))
		f, _ := g.Advance(g.Start(trio, "c", graph.Vars{}), text("a"))
		t.Equal(f.Expected, "c")
	})
	spec.Check(t, "ag2-channels#36: terminate returns null with its reason", func(t *spec.T) {
		t.Equal(resolve(end("wrapped_up"), said, text("c")), graph.Decision{End: true, Reason: "wrapped_up"})
		g := build(t, rules("a", rule(graph.Always{}, end("wrapped_up"))))
		f, route := g.Advance(g.Start(trio, "a", graph.Vars{}), text("a"))
		t.Equal(route.Decision, graph.Decision{End: true, Reason: "wrapped_up"})
		t.Equal(f.Expected, "")
		t.True(f.Ended, "nobody is expected after terminate")
	})
	spec.Check(t, "seed-002#16: a target that goes on yields a speaker", func(t *spec.T) {
		for _, target := range []graph.Target{to("a"), graph.RoundRobin{}, graph.Stay{}, graph.RevertToInitiator{}} {
			d := resolve(target, graph.Facts{Order: trio, Creator: "a", LastSpeaker: "b"}, text("b"))
			want := map[string]string{"agent": "a", "round_robin": "c", "stay": "b", "revert_to_initiator": "a"}
			t.Equal(d, graph.Decision{Speaker: want[target.Name()]})
		}
	})
	spec.Check(t, "seed-002#16: a target that ends yields a reason", func(t *spec.T) {
		t.Equal(resolve(end("over"), said, text("c")), graph.Decision{End: true, Reason: "over"})
	})
}

func TestSpecConditions(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-channels#37 seed-002#44: always is true", func(t *spec.T) {
		for _, e := range []*envelope.Envelope{text("a"), text("stranger"), static("b", "t"), packet("c", `{}`)} {
			t.True(evaluate(graph.Always{}, graph.Facts{}, e), "always on %s from %s", e.Type, e.Sender)
		}
	})
	spec.Check(t, "ag2-channels#38 seed-002#45: from_speaker matches sender only", func(t *spec.T) {
		f := graph.Facts{LastSpeaker: "b", Creator: "b", Expected: "b"}
		t.True(evaluate(from("a"), f, text("a")), "the sender matches")
		t.True(evaluate(from("a"), f, static("a", "t")), "the sender of a packet matches")
		t.False(evaluate(from("b"), f, text("a")), "another matches")
		t.False(evaluate(from("A"), f, text("a")), "another case matches")
	})
	spec.Check(t, "ag2-channels#39 seed-002#46: the packet's tool matches, another does not", func(t *spec.T) {
		page := graph.ToolCalled{ToolName: "page"}
		t.True(evaluate(page, graph.Facts{}, static("a", "page")), "the tool matches")
		t.True(evaluate(page, graph.Facts{}, packet("a", `{"routing":{"kind":"text","tool":"page"}}`)), "whatever the kind")
		t.True(evaluate(page, graph.Facts{}, packet("a", `{"routing":{"tool":"page"}}`)), "also without a kind")
		t.False(evaluate(page, graph.Facts{}, static("a", "page2")), "another tool matches")
		t.False(evaluate(page, graph.Facts{}, packet("a", `{"tool":"page","routing":{"kind":"page","reason":"page"}}`)), "another field matches")
	})
	spec.Check(t, "ag2-channels#40 seed-002#46: a text calls no tool", func(t *spec.T) {
		e := static("a", "page")
		e.Type = envelope.TypeText
		t.False(evaluate(graph.ToolCalled{ToolName: "page"}, graph.Facts{}, e), "a text matches")
	})
	spec.Check(t, "seed-002#47: context_equals is true while the key has the value", func(t *spec.T) {
		f := graph.Facts{Vars: vars(t, `{"route":"security","n":2,"flag":true}`)}
		t.True(evaluate(is("route", `"security"`), f, text("a")), "an equal text matches")
		t.False(evaluate(is("route", `"billing"`), f, text("a")), "another text matches")
		t.True(evaluate(is("n", `2.0`), f, text("a")), "an equal number matches")
		t.False(evaluate(is("n", `"2"`), f, text("a")), "a text matches a number")
		t.False(evaluate(is("flag", `1`), f, text("a")), "1 matches true")
		t.False(evaluate(is("other", `"security"`), f, text("a")), "another key matches")
	})
	spec.Check(t, "seed-002#61: ContextEquals on a key that was never set compares null", func(t *spec.T) {
		for _, value := range []string{`"security"`, `false`, `0`, `""`, `[]`, `{}`} {
			t.False(evaluate(is("never_set", value), graph.Facts{}, text("a")), "unset equals %s", value)
		}
		t.True(evaluate(is("never_set", `null`), graph.Facts{}, text("a")), "unset compares as null")
	})
	spec.Check(t, "seed-002#62: ContextEquals(key, null) matches a key that is missing", func(t *spec.T) {
		t.True(evaluate(is("k", `null`), graph.Facts{Vars: vars(t, `{"j":1}`)}, text("a")), "missing equals null")
		t.False(evaluate(is("k", `null`), graph.Facts{Vars: vars(t, `{"k":1}`)}, text("a")), "set equals null")
	})
	spec.Check(t, "seed-002#70: a registered all_of is true only if both parts are", func(t *spec.T) {
		r := graph.NewRegistry(graph.Limits{})
		t.NoError(r.RegisterCondition(Both{}))
		g, err := r.Load([]byte(`{"initial_speaker":"a","transitions":[{"when":{"name":"both","args":{"parts":[{"name":"from_speaker","args":{"agent_id":"a"}},{"name":"context_equals","args":{"key":"k","value":1}}]}},"then":{"name":"agent","args":{"agent_id":"c"}}}],"default_target":{"name":"agent","args":{"agent_id":"b"}}}`))
		t.NoError(err)
		for _, tc := range []struct{ sender, vars, next string }{
			{"a", `{"k":1}`, "c"}, {"a", `{"k":2}`, "b"}, {"a", `{}`, "b"}, {"b", `{"k":1}`, "b"}, {"b", `{}`, "b"},
		} {
			f, _ := g.Advance(g.Start(trio, "a", vars(t, tc.vars)), text(tc.sender))
			t.Equal(f.Expected, tc.next)
		}
	})
	spec.Check(t, "seed-002#13 seed-002#76: a condition is asked with the advanced state", func(t *spec.T) {
		seen := new(witness)
		g := build(t, rules("a", rule(seen, graph.Stay{})))
		before := g.Start(trio, "c", vars(t, `{"k":1}`))
		e := packet("a", `{"context_updates":{"set":{"k":2}}}`)
		g.Advance(before, e)
		t.Equal(seen.facts, graph.Facts{
			Order: trio, Creator: "c", Expected: "a", LastSpeaker: "a", LastEnvelope: "p-a", Turns: 1, Vars: vars(t, `{"k":2}`),
		})
		t.True(seen.envelope == e, "it sees the envelope itself")
	})
}

// Both is the conjunction that the seed's readers write for themselves.
type Both struct {
	Parts graph.Conditions `json:"parts"`
}

func (Both) Name() string { return "both" }

func (b Both) Evaluate(f *graph.Facts, t *graph.Turn) bool {
	return b.Parts[0].Evaluate(f, t) && b.Parts[1].Evaluate(f, t)
}

// witness records its arguments.
type witness struct {
	facts    graph.Facts
	envelope *envelope.Envelope
}

func (*witness) Name() string { return "witness" }

func (w *witness) Evaluate(f *graph.Facts, t *graph.Turn) bool {
	w.facts, w.envelope = *f, t.Envelope
	return true
}

func TestSpecEvaluation(t *testing.T) {
	t.Parallel()
	at := func(priority int, when graph.Condition, agent string) graph.Transition {
		return graph.Transition{When: when, Then: to(agent), Priority: priority}
	}
	next := func(t *spec.T, list ...graph.Transition) string {
		g := build(t, rules("a", list...))
		f, _ := g.Advance(g.Start(trio, "a", graph.Vars{}), text("a"))
		return f.Expected
	}
	spec.Check(t, "seed-002#14: the first matching transition by priority is taken", func(t *spec.T) {
		var asked [4]int
		g := build(t, rules("a",
			at(9, counted{true, &asked[0]}, "late"),
			at(1, counted{false, &asked[1]}, "no"),
			at(2, counted{true, &asked[2]}, "first"),
			at(2, counted{true, &asked[3]}, "second"),
		))
		f, route := g.Advance(g.Start(trio, "a", graph.Vars{}), text("a"))
		t.Equal(f.Expected, "first")
		t.Equal(route.Rule, 2)
		t.Equal(asked, [4]int{0, 1, 1, 0})
	})
	spec.Check(t, "seed-002#15: when no transition matches, default_target is resolved", func(t *spec.T) {
		g := build(t, graph.Definition{InitialSpeaker: "a", Transitions: []graph.Transition{at(0, from("b"), "c")}, Default: to("z")})
		f, route := g.Advance(g.Start(trio, "a", graph.Vars{}), text("a"))
		t.Equal(f.Expected, "z")
		t.Equal(route, graph.Route{By: graph.ByDefault, Rule: graph.NoRule, Decision: graph.Decision{Speaker: "z"}})
		f, route = g.Advance(g.Start(trio, "a", graph.Vars{}), text("b"))
		t.Equal(f.Expected, "c")
		t.Equal(route.By, graph.ByRule)
	})
	spec.Check(t, "seed-002#34: when is evaluated against the accepted envelope", func(t *spec.T) {
		g := build(t, rules("a", at(0, from("a"), "b"), at(0, graph.ToolCalled{ToolName: "t"}, "c")))
		f := g.Start(trio, "a", graph.Vars{})
		f, _ = g.Advance(f, text("a"))
		t.Equal(f.Expected, "b")
		// Now the envelope of b is read, not that of a.
		f, _ = g.Advance(f, static("b", "t"))
		t.Equal(f.Expected, "c")
	})
	spec.Check(t, "seed-002#35: then is resolved when the condition is true", func(t *spec.T) {
		t.Equal(next(t, at(0, from("b"), "b"), at(0, from("a"), "c")), "c")
	})
	spec.Check(t, "seed-002#37: transitions are evaluated by ascending priority", func(t *spec.T) {
		t.Equal(next(t, at(10, graph.Always{}, "b"), at(1, graph.Always{}, "c")), "c")
		t.Equal(next(t, at(1, graph.Always{}, "b"), at(10, graph.Always{}, "c")), "b")
		t.Equal(next(t, at(0, graph.Always{}, "b"), at(-1, graph.Always{}, "c")), "c")
	})
	spec.Check(t, "seed-002#38: equal priorities are checked in list order", func(t *spec.T) {
		t.Equal(next(t, at(5, graph.Always{}, "b"), at(5, graph.Always{}, "c")), "b")
		t.Equal(next(t, at(9, graph.Always{}, "x"), at(5, graph.Always{}, "c"), at(5, graph.Always{}, "b")), "c")
	})
}

func TestSpecContextRouting(t *testing.T) {
	t.Parallel()
	dispatch := build(t, rules("triage",
		rule(is("domain", `"security"`), to("security")),
		rule(is("domain", `"billing"`), to("billing")),
		rule(from("triage"), to("generic")),
	))
	people := []string{"triage", "security", "billing", "generic"}
	spec.Check(t, "seed-002#66: a value of the key routes to its own agent", func(t *spec.T) {
		f := dispatch.Start(people, "triage", graph.Vars{})
		f, _ = dispatch.Advance(f, contextSet("triage", `{"set":{"domain":"security"}}`))
		f, route := dispatch.Advance(f, text("triage"))
		t.Equal(f.Expected, "security")
		t.Equal(route.Rule, 0)
		asked := 0
		g := build(t, rules("triage", rule(is("domain", `"security"`), to("security")), rule(counted{true, &asked}, to("generic"))))
		f, _ = g.Advance(g.Start(people, "triage", vars(t, `{"domain":"security"}`)), text("triage"))
		t.Equal(f.Expected, "security")
		t.Equal(asked, 0)
	})
	spec.Check(t, "seed-002#67: without the key the generic rule decides", func(t *spec.T) {
		f, route := dispatch.Advance(dispatch.Start(people, "triage", graph.Vars{}), text("triage"))
		t.Equal(f.Expected, "generic")
		t.Equal(route.Rule, 2)
	})
	byOrder := build(t, rules("x", rule(is("escalate", "true"), to("boss")), rule(from("x"), to("peer"))))
	spec.Check(t, "seed-002#68: with the flag set the first rule is taken", func(t *spec.T) {
		f, route := byOrder.Advance(byOrder.Start([]string{"x", "boss", "peer"}, "x", vars(t, `{"escalate":true}`)), text("x"))
		t.Equal(f.Expected, "boss")
		t.Equal(route.Rule, 0)
	})
	spec.Check(t, "seed-002#69: without the flag the second rule is taken", func(t *spec.T) {
		f, route := byOrder.Advance(byOrder.Start([]string{"x", "boss", "peer"}, "x", graph.Vars{}), text("x"))
		t.Equal(f.Expected, "peer")
		t.Equal(route.Rule, 1)
	})
	spec.Check(t, "seed-002#71: context_equals fires as long as the key keeps its value", func(t *spec.T) {
		g := build(t, rules("a", rule(is("k", "1"), graph.RoundRobin{})))
		f, _ := g.Advance(g.Start(trio, "a", graph.Vars{}), contextSet("a", `{"set":{"k":1}}`))
		for _, next := range []string{"b", "c", "a", "b"} {
			var route graph.Route
			f, route = g.Advance(f, text(f.Expected))
			t.Equal(route.Rule, 0)
			t.Equal(f.Expected, next)
		}
		f, _ = g.Advance(f, contextSet("a", `{"set":{"k":2}}`))
		f, route := g.Advance(f, text(f.Expected))
		t.Equal(route.By, graph.ByDefault)
		t.True(f.Ended, "the rule no longer fires once the key has changed")
	})
	spec.Check(t, "seed-002#75: the checker warns of a rule that selects its own target", func(t *spec.T) {
		sticky := rule(is("route", `"security"`), to("security"))
		back := rule(from("security"), end("handled"))
		people := []string{"triage", "security"}
		t.Equal(graph.Check(build(t, rules("triage", sticky, back)), people), []graph.Finding{{
			Severity: "warning", Code: "sticky_loop", Path: "transitions[0]",
			Message: `context_equals(route = "security") stays true after 'security' has spoken and selects 'security' again: ` +
				`transitions[1], from_speaker(security), must be tried before it, or the key be deleted`,
		}})
		t.Equal(graph.Check(build(t, rules("triage", back, sticky)), people), []graph.Finding(nil))
	})
}
