package graph_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/graph"
)

const sample = `{"initial_speaker":"agt-ines",` +
	`"transitions":[` +
	`{"when":{"name":"tool_called","args":{"tool_name":"page_oncall"}},"then":{"name":"agent","args":{"agent_id":"agt-otto"}},"priority":0},` +
	`{"when":{"name":"from_speaker","args":{"agent_id":"agt-otto"}},"then":{"name":"revert_to_initiator","args":{}},"priority":5}],` +
	`"default_target":{"name":"terminate","args":{"reason":"nothing_left"}},` +
	`"max_turns":12}`

// everything has each kind of node once, and values that a careless codec
// would change.
const everything = `{"initial_speaker":"a","transitions":[` +
	`{"when":{"name":"always","args":{}},"then":{"name":"round_robin","args":{}},"priority":-7},` +
	`{"when":{"name":"from_speaker","args":{"agent_id":"é"}},"then":{"name":"stay","args":{}},"priority":9223372036854775807},` +
	`{"when":{"name":"context_equals","args":{"key":"k","value":{"z":1.50,"a":[9007199254740993,"\u00e9",null,true,1e400]}}},"then":{"name":"agent","args":{"agent_id":""}},"priority":0},` +
	`{"when":{"name":"context_equals","args":{"key":"k","value":null}},"then":{"name":"terminate","args":{"reason":""}},"priority":0},` +
	`{"when":{"name":"context_threshold","args":{"key":"n","threshold":10.00}},"then":{"name":"revert_to_initiator","args":{}},"priority":0},` +
	`{"when":{"name":"context_in","args":{"key":"k","values":[1,"two",{"three":3}]}},"then":{"name":"stay","args":{}},"priority":0},` +
	`{"when":{"name":"context_in","args":{"key":"k","values":[]}},"then":{"name":"stay","args":{}},"priority":0},` +
	`{"when":{"name":"all_of","args":{"conditions":[{"name":"any_of","args":{"conditions":[{"name":"tool_called","args":{"tool_name":"t"}},{"name":"always","args":{}}]}},{"name":"from_speaker","args":{"agent_id":"a"}}]}},"then":{"name":"stay","args":{}},"priority":0},` +
	`{"when":{"name":"all_of","args":{"conditions":[]}},"then":{"name":"stay","args":{}},"priority":0}` +
	`],"default_target":{"name":"round_robin","args":{}},"max_turns":null}`

func TestObjectFormRoundTrips(t *testing.T) {
	t.Parallel()
	for _, text := range []string{sample, everything} {
		g := load(t, text)
		equal(t, object(t, g), text)
		equal(t, g.Source(), text)
		viaV1, err := json.Marshal(g)
		equal(t, err, nil)
		equal(t, json.Valid(viaV1), true)
		viaV2, err := jsonv2.Marshal(g, jsontext.PreserveRawStrings(true))
		equal(t, err, nil)
		equal(t, string(viaV2), text)
		again := build(t, g.Definition())
		equal(t, object(t, again), text)
		equal(t, again.Source(), text)
	}
}

func TestDefinitionOfALoadedGraph(t *testing.T) {
	t.Parallel()
	g := load(t, sample)
	equal(t, g.Definition(), graph.Definition{
		InitialSpeaker: "agt-ines",
		Transitions: []graph.Transition{
			{When: graph.ToolCalled{ToolName: "page_oncall"}, Then: to("agt-otto")},
			{When: from("agt-otto"), Then: graph.RevertToInitiator{}, Priority: 5},
		},
		Default:  end("nothing_left"),
		MaxTurns: new(12),
	})
	equal(t, g.InitialSpeaker(), "agt-ines")
	equal(t, g.Len(), 2)
	equal(t, g.Transition(1), graph.Transition{When: from("agt-otto"), Then: graph.RevertToInitiator{}, Priority: 5})
	equal(t, g.Default(), end("nothing_left"))
	turns, capped := g.MaxTurns()
	equal(t, turns, 12)
	equal(t, capped, true)
	_, capped = load(t, everything).MaxTurns()
	equal(t, capped, false)
}

func TestDefinitionIsACopy(t *testing.T) {
	t.Parallel()
	list := []graph.Transition{rule(graph.Always{}, to("b"))}
	g := build(t, graph.Definition{InitialSpeaker: "a", Transitions: list, MaxTurns: new(2)})
	want := object(t, g)
	list[0] = rule(graph.Always{}, to("z"))
	d := g.Definition()
	d.Transitions[0] = rule(graph.Always{}, to("z"))
	*d.MaxTurns = 99
	equal(t, object(t, g), want)
}

func TestDefaultsOnInput(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"only a speaker", `{"initial_speaker":"a"}`, `{"initial_speaker":"a","transitions":[],"default_target":{"name":"terminate","args":{"reason":"after_work"}},"max_turns":null}`},
		{"nulls", `{"initial_speaker":"a","default_target":null,"max_turns":null}`, `{"initial_speaker":"a","transitions":[],"default_target":{"name":"terminate","args":{"reason":"after_work"}},"max_turns":null}`},
		{"no args, no priority, no then", `{"initial_speaker":"a","transitions":[{"when":{"name":"always"},"then":null}],"default_target":{"name":"terminate"}}`, `{"initial_speaker":"a","transitions":[{"when":{"name":"always","args":{}},"then":{"name":"terminate","args":{"reason":"after_work"}},"priority":0}],"default_target":{"name":"terminate","args":{"reason":"after_work"}},"max_turns":null}`},
		{"unknown keys", ` { "max_turns" : 3, "x":{"y":[1]}, "initial_speaker":"a","transitions":[{"priority":1,"note":"n","when":{"name":"always","args":{},"z":1},"then":{"args":{},"name":"stay","q":[]}}]}`, `{"initial_speaker":"a","transitions":[{"when":{"name":"always","args":{}},"then":{"name":"stay","args":{}},"priority":1}],"default_target":{"name":"terminate","args":{"reason":"after_work"}},"max_turns":3}`},
		{"negative cap", `{"initial_speaker":"","max_turns":-4}`, `{"initial_speaker":"","transitions":[],"default_target":{"name":"terminate","args":{"reason":"after_work"}},"max_turns":-4}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			equal(t, object(t, load(t, tc.in)), tc.want)
		})
	}
}

func TestSourceKeepsWhatWasGiven(t *testing.T) {
	t.Parallel()
	g := load(t, " {\"note\": \"\\u00e9 \\/\",\n \"initial_speaker\" :\"a\" , \"n\": 1.00}\n")
	equal(t, g.Source(), `{"note":"\u00e9 \/","initial_speaker":"a","n":1.00}`)
}

func TestDumpsIsSortedText(t *testing.T) {
	t.Parallel()
	g := load(t, `{"initial_speaker":"zoë","transitions":[{"then":{"name":"stay"},"when":{"name":"context_equals","args":{"value":{"b":1.50,"a":["x\"y\\","\ud83d\ude00","\u007f","~"]},"key":"k"}}}],"max_turns":2}`)
	text, err := g.Dumps()
	equal(t, err, nil)
	equal(t, text, `{"default_target": {"args": {"reason": "after_work"}, "name": "terminate"}, "initial_speaker": "zo\u00eb", "max_turns": 2, "transitions": [{"priority": 0, "then": {"args": {}, "name": "stay"}, "when": {"args": {"key": "k", "value": {"a": ["x\"y\\", "\ud83d\ude00", "\u007f", "~"], "b": 1.50}}, "name": "context_equals"}}]}`)
	again := load(t, text)
	got, err := again.Dumps()
	equal(t, err, nil)
	equal(t, got, text)
}

// TestRefusals holds the exact texts of what is refused.
func TestRefusals(t *testing.T) {
	t.Parallel()
	transition := func(s string) string { return `{"initial_speaker":"a","transitions":[` + s + `]}` }
	when := func(s string) string { return transition(`{"when":` + s + `,"then":{"name":"stay"}}`) }
	then := func(s string) string { return transition(`{"when":{"name":"always"},"then":` + s + `}`) }
	const conditions = "all_of, always, any_of, context_equals, context_in, context_threshold, from_speaker, tool_called"
	const targets = "agent, revert_to_initiator, round_robin, stay, terminate"
	for _, tc := range []struct{ name, in, want string }{
		{"a string", `"{}"`, "graph: a graph must be a JSON object, not a string"},
		{"an array", `[]`, "graph: a graph must be a JSON object, not an array"},
		{"null", `null`, "graph: a graph must be a JSON object, not null"},
		{"no initial speaker", `{}`, "graph: lacks 'initial_speaker'"},
		{"initial speaker of another type", `{"initial_speaker":3}`, "graph: initial_speaker: must be a string, not a number"},
		{"null initial speaker", `{"initial_speaker":null}`, "graph: initial_speaker: must be a string, not null"},
		{"transitions no array", `{"initial_speaker":"a","transitions":{}}`, "graph: transitions: must be an array, not an object"},
		{"null transitions", `{"initial_speaker":"a","transitions":null}`, "graph: transitions: must be an array, not null"},
		{"transition no object", transition(`true`), "graph: transitions[0]: a transition must be a JSON object, not a boolean"},
		{"no when", transition(`{"then":null}`), "graph: transitions[0]: lacks 'when'"},
		{"no then", transition(`{"when":{"name":"always"}}`), "graph: transitions[0]: lacks 'then'"},
		{"null when", transition(`{"when":null,"then":null}`), "graph: transitions[0].when: a condition must be a JSON object, not null"},
		{"priority of another type", transition(`{"when":{"name":"always"},"then":null,"priority":"high"}`), `graph: transitions[0].priority: must be an integer of at most 64 bits, not "high"`},
		{"broken priority", transition(`{"when":{"name":"always"},"then":null,"priority":1.5}`), "graph: transitions[0].priority: must be an integer of at most 64 bits, not 1.5"},
		{"huge priority", transition(`{"when":{"name":"always"},"then":null,"priority":9223372036854775808}`), "graph: transitions[0].priority: must be an integer of at most 64 bits, not 9223372036854775808"},
		{"null priority", transition(`{"when":{"name":"always"},"then":null,"priority":null}`), "graph: transitions[0].priority: must be an integer of at most 64 bits, not null"},
		{"long priority", transition(`{"when":{"name":"always"},"then":null,"priority":"` + strings.Repeat("x", 39) + `"}`), "graph: transitions[0].priority: must be an integer of at most 64 bits, not a string"},
		{"not so long priority", transition(`{"when":{"name":"always"},"then":null,"priority":"` + strings.Repeat("x", 38) + `"}`), `graph: transitions[0].priority: must be an integer of at most 64 bits, not "` + strings.Repeat("x", 38) + `"`},
		{"max turns", `{"initial_speaker":"a","max_turns":true}`, "graph: max_turns: must be an integer of at most 64 bits, not true"},
		{"quoted max turns", `{"initial_speaker":"a","max_turns":"5"}`, `graph: max_turns: must be an integer of at most 64 bits, not "5"`},

		{"unknown target", then(`{"name":"mars"}`), "graph: transitions[0].then: no transition target registered for 'mars'; registered are " + targets},
		{"unknown default", `{"initial_speaker":"a","default_target":{"name":"mars"}}`, "graph: default_target: no transition target registered for 'mars'; registered are " + targets},
		{"unknown condition", when(`{"name":"mars"}`), "graph: transitions[0].when: no transition condition registered for 'mars'; registered are " + conditions},
		{"a target is no condition", when(`{"name":"stay"}`), "graph: transitions[0].when: no transition condition registered for 'stay'; registered are " + conditions},
		{"a condition is no target", then(`{"name":"always"}`), "graph: transitions[0].then: no transition target registered for 'always'; registered are " + targets},
		{"unknown nested condition", when(`{"name":"any_of","args":{"conditions":[{"name":"always"},{"name":"all_of","args":{"conditions":[{"name":"mars"}]}}]}}`), "graph: transitions[0].when.args.conditions[1].args.conditions[0]: no transition condition registered for 'mars'; registered are " + conditions},
		{"node without name", when(`{"args":{}}`), "graph: transitions[0].when: lacks 'name'"},
		{"name of another type", when(`{"name":1}`), "graph: transitions[0].when.name: must be a string, not a number"},
		{"target of another type", then(`"stay"`), "graph: transitions[0].then: a target must be a JSON object, not a string"},
		{"null args", when(`{"name":"always","args":null}`), "graph: transitions[0].when.args: args must be a JSON object, not null"},
		{"missing arg", when(`{"name":"from_speaker","args":{}}`), "graph: transitions[0].when.args: 'from_speaker' lacks 'agent_id'; it takes agent_id"},
		{"missing value", when(`{"name":"context_equals","args":{"key":"k"}}`), "graph: transitions[0].when.args: 'context_equals' lacks 'value'; it takes key, value"},
		{"unknown arg", when(`{"name":"always","args":{"x":1}}`), "graph: transitions[0].when.args: 'always' does not take 'x'; it takes no args"},
		{"unknown arg beside a known one", then(`{"name":"terminate","args":{"why":"x"}}`), "graph: transitions[0].then.args: 'terminate' does not take 'why'; it takes reason (optional)"},
		{"case matters", when(`{"name":"from_speaker","args":{"Agent_ID":"a"}}`), "graph: transitions[0].when.args: 'from_speaker' does not take 'Agent_ID'; it takes agent_id"},
		{"null arg", when(`{"name":"from_speaker","args":{"agent_id":null}}`), "graph: transitions[0].when.args.agent_id: must not be null"},
		{"arg of another type", when(`{"name":"from_speaker","args":{"agent_id":7}}`), "graph: transitions[0].when.args.agent_id: must be a string, not 7"},
		{"values no array", when(`{"name":"context_in","args":{"key":"k","values":"v"}}`), `graph: transitions[0].when.args.values: must be an array, not "v"`},
		{"null values", when(`{"name":"context_in","args":{"key":"k","values":null}}`), "graph: transitions[0].when.args.values: must not be null"},
		{"threshold no number", when(`{"name":"context_threshold","args":{"key":"k","threshold":true}}`), "graph: transitions[0].when.args.threshold: must be a number, not a boolean"},
		{"threshold a quoted number", when(`{"name":"context_threshold","args":{"key":"k","threshold":"3"}}`), "graph: transitions[0].when.args.threshold: must be a number, not a string"},
		{"nested no array", when(`{"name":"all_of","args":{"conditions":{"name":"always"}}}`), "graph: transitions[0].when.args.conditions: must be an array, not an object"},
		{"null nested", when(`{"name":"all_of","args":{"conditions":null}}`), "graph: transitions[0].when.args.conditions: must not be null"},
		{"nested name only", when(`{"name":"all_of","args":{"conditions":["always"]}}`), "graph: transitions[0].when.args.conditions[0]: a condition must be a JSON object, not a string"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := graph.NewRegistry(graph.Limits{}).Load([]byte(tc.in))
			refusedWith(t, err, tc.want)
		})
	}
}

func refusedWith(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted; want %q", want)
	}
	var refused *graph.Error
	if !errors.As(err, &refused) {
		t.Fatalf("error of type %T: %v", err, err)
	}
	equal(t, err.Error(), want)
}

func TestBadSyntaxIsRefused(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		``, `{`, `{}{}`, `{"initial_speaker":"a",}`, `{"initial_speaker":"a","initial_speaker":"b"}`,
		"{\"initial_speaker\":\"\xff\"}", `{"initial_speaker":"a","max_turns":01}`, `{'initial_speaker':'a'}`,
		`{"initial_speaker":"a","x":{"k":1,"k":2}}`,
	} {
		_, err := graph.Load([]byte(in))
		if err == nil || !strings.HasPrefix(err.Error(), "graph: not valid JSON: ") {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	r := graph.NewRegistry(graph.Limits{Bytes: 300, Transitions: 2, Depth: 2})
	one := `{"when":{"name":"always"},"then":null}`
	list := func(s ...string) string {
		return `{"initial_speaker":"a","transitions":[` + strings.Join(s, ",") + `]}`
	}
	nest := func(s string) string { return `{"name":"all_of","args":{"conditions":[` + s + `]}}` }
	deep := func(s string) string { return list(`{"then":null,"when":` + s + `}`) }
	for _, tc := range []struct{ in, want string }{
		{list(one, one), ""},
		{list(one, one, one), "graph: transitions: 3 of them; at most 2"},
		{deep(nest(`{"name":"always"}`)), ""},
		{deep(nest(nest(`{"name":"always"}`))), "graph: transitions[0].when.args.conditions[0].args.conditions[0]: conditions nest deeper than 2"},
		{list(one) + strings.Repeat(" ", 300-len(list(one))), ""},
		{list(one) + strings.Repeat(" ", 301-len(list(one))), "graph: 301 bytes; at most 300"},
	} {
		_, err := r.Load([]byte(tc.in))
		if tc.want == "" {
			equal(t, err, nil)
		} else {
			refusedWith(t, err, tc.want)
		}
	}
	// The defaults.
	r = graph.NewRegistry(graph.Limits{})
	s := `{"name":"always"}`
	for range 15 {
		s = nest(s)
	}
	_, err := r.Load([]byte(deep(s)))
	equal(t, err, nil)
	_, err = r.Load([]byte(deep(nest(s))))
	equal(t, strings.HasSuffix(err.Error(), "conditions nest deeper than 16"), true)
	many := make([]string, 4097)
	for i := range many {
		many[i] = one
	}
	_, err = r.Load([]byte(list(many[1:]...)))
	equal(t, err, nil)
	_, err = r.Load([]byte(list(many...)))
	refusedWith(t, err, "graph: transitions: 4097 of them; at most 4096")
	_, err = r.Load(make([]byte, 1<<20+1))
	refusedWith(t, err, "graph: 1048577 bytes; at most 1048576")
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		def  graph.Definition
		want string
	}{
		{"no condition", rules("a", rule(graph.Always{}, graph.Stay{}), rule(nil, graph.Stay{})), "graph: transitions[1]: a transition needs a condition and a target"},
		{"no target", rules("a", rule(graph.Always{}, nil)), "graph: transitions[0]: a transition needs a condition and a target"},
	} {
		_, err := graph.New(tc.def)
		refusedWith(t, err, tc.want)
	}
	for _, d := range []graph.Definition{
		rules("a", rule(graph.AllOf{Conditions: graph.Conditions{nil}}, graph.Stay{})),
		rules("a", rule(graph.ContextThreshold{Key: "k", Threshold: "many"}, graph.Stay{})),
		rules("a", rule(graph.ContextThreshold{Key: "k", Threshold: "1x"}, graph.Stay{})),
		rules("a", rule(is("k", "not json"), graph.Stay{})),
		rules("a", rule(graph.ContextThreshold{Key: "k", Threshold: "1 "}, graph.Stay{})),
		rules("a", rule(notAStruct("x"), graph.Stay{})),
		rules("a", rule(graph.Always{}, to("\xff"))),
		rules("a", rule(from("\xff"), graph.Stay{})),
		rules("\xff"),
		{InitialSpeaker: "a", Default: to("\xff")},
	} {
		_, err := graph.New(d)
		equal(t, err != nil, true)
	}
	equal(t, build(t, graph.Definition{InitialSpeaker: "a"}).Default(), end("after_work"))
}
