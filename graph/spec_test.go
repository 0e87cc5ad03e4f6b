package graph_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

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
		t.Equal(resolve(graph.Stay{}, said, text("a")), graph.Decision{Speaker: "c"}) // whoever sent this one
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

// witness remembers what it was asked with.
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
		// Now the envelope of b is looked at, not that of a.
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

func TestSpecObjectForm(t *testing.T) {
	t.Parallel()
	const form = `{"initial_speaker":"a","transitions":[` +
		`{"when":{"name":"context_equals","args":{"key":"k","value":{"n":1.50}}},"then":{"name":"agent","args":{"agent_id":"b"}},"priority":7},` +
		`{"when":{"name":"tool_called","args":{"tool_name":"t"}},"then":{"name":"stay","args":{}},"priority":-2},` +
		`{"when":{"name":"always","args":{}},"then":{"name":"terminate","args":{"reason":"r"}},"priority":0}],` +
		`"default_target":{"name":"agent","args":{"agent_id":"c"}},"max_turns":8}`
	spec.Check(t, "ag2-channels#41: object form keeps priorities, args, cap and default", func(t *spec.T) {
		g := load(t, form)
		t.Equal(g.Definition(), graph.Definition{
			InitialSpeaker: "a",
			Transitions: []graph.Transition{
				{When: is("k", `{"n":1.50}`), Then: to("b"), Priority: 7},
				{When: graph.ToolCalled{ToolName: "t"}, Then: graph.Stay{}, Priority: -2},
				{When: graph.Always{}, Then: end("r")},
			},
			Default: to("c"), MaxTurns: graph.Cap(8),
		})
		t.Equal(object(t, g), form)
		t.Equal(object(t, build(t, g.Definition())), form)
	})
	spec.Check(t, "ag2-channels#42: text form round-trips", func(t *spec.T) {
		g := load(t, form)
		text, err := g.Dumps()
		t.NoError(err)
		t.Equal(text, `{"default_target": {"args": {"agent_id": "c"}, "name": "agent"}, "initial_speaker": "a", "max_turns": 8, "transitions": [`+
			`{"priority": 7, "then": {"args": {"agent_id": "b"}, "name": "agent"}, "when": {"args": {"key": "k", "value": {"n": 1.50}}, "name": "context_equals"}}, `+
			`{"priority": -2, "then": {"args": {}, "name": "stay"}, "when": {"args": {"tool_name": "t"}, "name": "tool_called"}}, `+
			`{"priority": 0, "then": {"args": {"reason": "r"}, "name": "terminate"}, "when": {"args": {}, "name": "always"}}]}`)
		t.Equal(load(t, text).Definition(), g.Definition())
	})
	spec.Check(t, "ag2-channels#43 seed-002#51: an unknown target", func(t *spec.T) {
		_, err := graph.Load([]byte(`{"initial_speaker":"a","transitions":[{"when":{"name":"always"},"then":{"name":"teleport","args":{}}}]}`))
		t.ErrorContains(err, "no transition target registered for 'teleport'")
		_, err = graph.Load([]byte(`{"initial_speaker":"a","default_target":{"name":"teleport"}}`))
		t.ErrorContains(err, "no transition target registered for 'teleport'")
	})
	spec.Check(t, "ag2-channels#44 seed-002#51: an unknown condition", func(t *spec.T) {
		_, err := graph.Load([]byte(`{"initial_speaker":"a","transitions":[{"when":{"name":"full_moon"},"then":{"name":"stay"}}]}`))
		t.ErrorContains(err, "no transition condition registered for 'full_moon'")
		_, err = graph.Load([]byte(`{"initial_speaker":"a","transitions":[{"when":{"name":"all_of","args":{"conditions":[{"name":"full_moon"}]}},"then":{"name":"stay"}}]}`))
		t.ErrorContains(err, "no transition condition registered for 'full_moon'")
	})
	spec.Check(t, "seed-002#30: a graph has initial_speaker, an agent_id string that is required", func(t *spec.T) {
		_, err := graph.Load([]byte(`{"transitions":[]}`))
		t.ErrorContains(err, "lacks 'initial_speaker'")
		_, err = graph.Load([]byte(`{"initial_speaker":7}`))
		t.ErrorContains(err, "initial_speaker: must be a string")
		t.Equal(load(t, `{"initial_speaker":"agt-7"}`).InitialSpeaker(), "agt-7")
	})
	spec.Check(t, "seed-002#31: transitions keep their order through serialisation", func(t *spec.T) {
		g := load(t, form)
		t.Equal(object(t, g), form)
		t.Equal([]graph.Condition{g.Transition(0).When, g.Transition(1).When, g.Transition(2).When},
			[]graph.Condition{is("k", `{"n":1.50}`), graph.ToolCalled{ToolName: "t"}, graph.Always{}})
	})
	spec.Check(t, "seed-002#32: a graph has default_target, kept through serialisation", func(t *spec.T) {
		t.Equal(load(t, object(t, load(t, form))).Default(), to("c"))
	})
	spec.Check(t, "seed-002#33: an integer is kept", func(t *spec.T) {
		turns, capped := load(t, object(t, load(t, form))).MaxTurns()
		t.Equal(turns, 8)
		t.True(capped, "it has a cap")
	})
	spec.Check(t, "seed-002#33: left out it is null", func(t *spec.T) {
		const want = `{"initial_speaker":"a","transitions":[],"default_target":{"name":"terminate","args":{"reason":"after_work"}},"max_turns":null}`
		t.Equal(object(t, load(t, `{"initial_speaker":"a"}`)), want)
		t.Equal(object(t, load(t, want)), want)
	})
	spec.Check(t, "seed-002#36: a transition has priority, 0 when left out", func(t *spec.T) {
		g := load(t, `{"initial_speaker":"a","transitions":[{"when":{"name":"always"},"then":{"name":"stay"}},{"when":{"name":"always"},"then":{"name":"stay"},"priority":3}]}`)
		t.Equal([]int{g.Transition(0).Priority, g.Transition(1).Priority}, []int{0, 3})
		t.Equal(load(t, object(t, g)).Definition(), g.Definition())
	})
	spec.Check(t, "seed-002#78: the four extra conditions exist and round-trip", func(t *spec.T) {
		const extras = `{"initial_speaker":"a","transitions":[` +
			`{"when":{"name":"context_threshold","args":{"key":"n","threshold":2.50}},"then":{"name":"stay","args":{}},"priority":0},` +
			`{"when":{"name":"context_in","args":{"key":"k","values":[1,"x",null]}},"then":{"name":"stay","args":{}},"priority":0},` +
			`{"when":{"name":"all_of","args":{"conditions":[{"name":"from_speaker","args":{"agent_id":"a"}},{"name":"any_of","args":{"conditions":[{"name":"from_speaker","args":{"agent_id":"z"}},{"name":"always","args":{}}]}}]}},"then":{"name":"stay","args":{}},"priority":0}],` +
			`"default_target":{"name":"stay","args":{}},"max_turns":null}`
		g := load(t, extras)
		t.Equal(object(t, g), extras)
		t.Equal(g.Definition().Transitions, []graph.Transition{
			{When: graph.ContextThreshold{Key: "n", Threshold: "2.50"}, Then: graph.Stay{}},
			{When: graph.ContextIn{Key: "k", Values: []jsontext.Value{raw("1"), raw(`"x"`), raw("null")}}, Then: graph.Stay{}},
			{When: graph.AllOf{Conditions: graph.Conditions{from("a"), graph.AnyOf{Conditions: graph.Conditions{from("z"), graph.Always{}}}}}, Then: graph.Stay{}},
		})
		f := graph.Facts{Vars: vars(t, `{"n":2.5,"k":"x"}`)}
		for i, want := range []bool{true, true, false} {
			t.Equal(evaluate(g.Transition(i).When, f, text("b")), want)
		}
		f.Vars = vars(t, `{"n":2.4,"k":"y"}`)
		for i, want := range []bool{false, false, true} {
			t.Equal(evaluate(g.Transition(i).When, f, text("a")), want)
		}
	})
	spec.Check(t, "seed-002#96: a node is a name with its fields as args", func(t *spec.T) {
		r := graph.NewRegistry(graph.Limits{})
		t.NoError(r.RegisterTarget(Pickle{}))
		g, err := r.Load([]byte(`{"initial_speaker":"a","default_target":{"name":"pickle","args":{"who":"z"}}}`))
		t.NoError(err)
		t.Equal(g.Default(), graph.Target(Pickle{Who: "z"}))
		t.Equal(object(t, g), `{"initial_speaker":"a","transitions":[],"default_target":{"name":"pickle","args":{"who":"z"}},"max_turns":null}`)
	})
}

func TestSpecRegistry(t *testing.T) {
	t.Parallel()
	const pickled = `{"initial_speaker":"a","transitions":[],"default_target":{"name":"pickle","args":{"who":"b"}},"max_turns":null}`
	const bothed = `{"initial_speaker":"a","transitions":[{"when":{"name":"both","args":{"parts":[{"name":"always","args":{}},{"name":"from_speaker","args":{"agent_id":"a"}}]}},"then":{"name":"agent","args":{"agent_id":"c"}},"priority":0}],"default_target":{"name":"stay","args":{}},"max_turns":null}`
	mine := graph.NewRegistry(graph.Limits{})
	for _, err := range []error{mine.RegisterTarget(Pickle{}), mine.RegisterCondition(Both{})} {
		equal(t, err, nil)
	}
	routes := func(t *spec.T, g *graph.Graph) string {
		f, _ := g.Advance(g.Start(trio, "a", graph.Vars{}), text("a"))
		return f.Expected
	}
	spec.Check(t, "ag2-channels#45 seed-002#49: a registered custom target round-trips with its fields", func(t *spec.T) {
		g, err := mine.Load([]byte(pickled))
		t.NoError(err)
		t.Equal(g.Default(), graph.Target(Pickle{Who: "b"}))
		t.Equal(object(t, g), pickled)
		t.Equal(routes(t, g), "b")
	})
	spec.Check(t, "seed-002#50: a registered condition is usable and round-trips", func(t *spec.T) {
		g, err := mine.Load([]byte(bothed))
		t.NoError(err)
		t.Equal(g.Transition(0).When, graph.Condition(Both{Parts: graph.Conditions{graph.Always{}, from("a")}}))
		t.Equal(object(t, g), bothed)
		t.Equal(routes(t, g), "c")
	})
	spec.Check(t, "ag2-channels#46: an isolated registry does not leak into another", func(t *spec.T) {
		other := graph.NewRegistry(graph.Limits{})
		_, err := other.Load([]byte(pickled))
		t.ErrorContains(err, "no transition target registered for 'pickle'")
		_, err = other.Load([]byte(bothed))
		t.ErrorContains(err, "no transition condition registered for 'both'")
		_, err = graph.Load([]byte(bothed))
		t.ErrorContains(err, "no transition condition registered for 'both'")
	})
	spec.Check(t, "ag2-channels#47: the default registry is a single shared instance", func(t *spec.T) {
		one, two := graph.Default(), graph.Default()
		t.True(one == two, "it is one instance")
		t.False(graph.Default() == graph.NewRegistry(graph.Limits{}), "a new one is the same")
		t.NoError(graph.RegisterTarget(Shared{}))
		g, err := graph.Default().Load([]byte(`{"initial_speaker":"a","default_target":{"name":"shared"}}`))
		t.NoError(err)
		t.Equal(g.Default(), graph.Target(Shared{}))
	})
	spec.Check(t, "seed-002#95: a registered node is used like a built-in one", func(t *spec.T) {
		t.NoError(graph.RegisterTarget(Shared{}))
		t.NoError(graph.RegisterCondition(Calm{}))
		g, err := graph.Load([]byte(`{"initial_speaker":"a","transitions":[{"when":{"name":"calm","args":{"below":2}},"then":{"name":"agent","args":{"agent_id":"b"}}}],"default_target":{"name":"shared"}}`))
		t.NoError(err)
		f, _ := g.Advance(g.Start(trio, "a", graph.Vars{}), text("a"))
		t.Equal(f.Expected, "b")
		f, _ = g.Advance(f, text("b"))
		t.Equal(f.Expected, "shared by all")
	})
	spec.Check(t, "seed-002#48: nodes are serialised under their registered name", func(t *spec.T) {
		nodes := map[string]graph.Definition{}
		for _, c := range []graph.Condition{graph.Always{}, from("x"), graph.ToolCalled{ToolName: "x"}, is("x", "1"), graph.ContextThreshold{}, graph.ContextIn{}, graph.AllOf{}, graph.AnyOf{}, Both{}} {
			nodes[c.Name()] = rules("a", rule(c, graph.Stay{}))
		}
		for _, target := range []graph.Target{to("x"), graph.RoundRobin{}, graph.RevertToInitiator{}, end("x"), Pickle{}} {
			nodes[target.Name()] = rules("a", rule(graph.Always{}, target))
		}
		t.Equal(len(nodes), 14)
		for name, d := range nodes {
			t.Contains(object(t, build(t, d)), `{"name":"`+name+`","args":{`)
		}
	})
}

// Shared is a target on the default registry.
type Shared struct{}

func (Shared) Name() string { return "shared" }

func (Shared) Resolve(*graph.Facts, *graph.Turn) graph.Decision {
	return graph.Decision{Speaker: "shared by all"}
}

// Calm is a condition on the default registry.
type Calm struct {
	Below int `json:"below"`
}

func (Calm) Name() string { return "calm" }

func (c Calm) Evaluate(f *graph.Facts, _ *graph.Turn) bool { return f.Turns < c.Below }

func TestSpecFactories(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-channels#48 seed-002#52: the factory makes one rule, always to round_robin", func(t *spec.T) {
		g, err := graph.NewRoundRobin(trio, nil)
		t.NoError(err)
		t.Equal(g.Definition().Transitions, []graph.Transition{{When: graph.Always{}, Then: graph.RoundRobin{}}})
	})
	spec.Check(t, "ag2-channels#49: sequence of three: two rules, cap 3", func(t *spec.T) {
		g, err := graph.NewSequence(trio)
		t.NoError(err)
		t.Equal(g.Definition(), graph.Definition{
			InitialSpeaker: "a",
			Transitions:    []graph.Transition{rule(from("a"), to("b")), rule(from("b"), to("c"))},
			Default:        end("sequence_complete"),
			MaxTurns:       graph.Cap(3),
		})
	})
	spec.Check(t, "seed-002#53: sequence links each step to the next, then terminates", func(t *spec.T) {
		g, err := graph.NewSequence([]string{"a", "b", "c", "d"})
		t.NoError(err)
		t.Equal(g.Definition(), graph.Definition{
			InitialSpeaker: "a",
			Transitions:    []graph.Transition{rule(from("a"), to("b")), rule(from("b"), to("c")), rule(from("c"), to("d"))},
			Default:        end("sequence_complete"),
			MaxTurns:       graph.Cap(4),
		})
	})
}
