package graph_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/graph"
)

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
			Default: to("c"), MaxTurns: new(8),
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
			MaxTurns:       new(3),
		})
	})
	spec.Check(t, "seed-002#53: sequence links each step to the next, then terminates", func(t *spec.T) {
		g, err := graph.NewSequence([]string{"a", "b", "c", "d"})
		t.NoError(err)
		t.Equal(g.Definition(), graph.Definition{
			InitialSpeaker: "a",
			Transitions:    []graph.Transition{rule(from("a"), to("b")), rule(from("b"), to("c")), rule(from("c"), to("d"))},
			Default:        end("sequence_complete"),
			MaxTurns:       new(4),
		})
	})
}
