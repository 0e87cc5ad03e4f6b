package graph_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/graph"
)

// Busy is a condition of a user's own.
type Busy struct {
	MinTurns int            `json:"min_turns"`
	Who      []string       `json:"who" graph:"optional"`
	Note     *string        `json:"note"`
	Extra    jsontext.Value `json:"extra" graph:"optional"`
	_        int
	Skipped  int `json:"-"`
	Plain    bool
}

// Odd has args of less common types.
type Odd struct {
	Ratio float64         `json:"ratio" graph:"optional"`
	Table map[string]int  `json:"table" graph:"optional"`
	Shape struct{ X int } `json:"shape" graph:"optional"`
	Wave  complexNumber   `json:"wave" graph:"optional"`
	Pipe  chan int        `json:"pipe" graph:"optional"`
}

func (Odd) Name() string { return "odd" }

func (Odd) Resolve(*graph.Facts, *graph.Turn) graph.Decision { return graph.Decision{} }

// complexNumber reads itself, and badly.
type complexNumber struct{ n complex128 }

func (c *complexNumber) UnmarshalJSON([]byte) error { return errors.New("too complex") }

func (c complexNumber) MarshalJSON() ([]byte, error) { return fmt.Append(nil, real(c.n)), nil }

func (Busy) Name() string { return "busy" }

func (b Busy) Evaluate(f *graph.Facts, _ *graph.Turn) bool { return f.Turns >= b.MinTurns }

// Pick is a target of a user's own, with pointer methods.
type Pick struct {
	Place int `json:"place"`
}

func (*Pick) Name() string { return "pick" }

func (p *Pick) Resolve(f *graph.Facts, _ *graph.Turn) graph.Decision {
	return graph.Decision{Speaker: f.Order[p.Place]}
}

// Most is a composer of a user's own.
type Most struct {
	Of graph.Conditions `json:"of"`
}

func (Most) Name() string { return "most" }

func (m Most) Evaluate(f *graph.Facts, t *graph.Turn) bool {
	yes := 0
	for _, c := range m.Of {
		if c.Evaluate(f, t) {
			yes++
		}
	}
	return 2*yes > len(m.Of)
}

func (m Most) Nested() graph.Conditions { return m.Of }

// node is a prototype with a name of the test's choice.
type node struct{ name string }

func (n node) Name() string { return n.name }

func (node) Evaluate(*graph.Facts, *graph.Turn) bool { return true }

func (node) Resolve(*graph.Facts, *graph.Turn) graph.Decision { return graph.Decision{} }

type notAStruct string

func (notAStruct) Name() string { return "text" }

func (notAStruct) Evaluate(*graph.Facts, *graph.Turn) bool { return true }

type embedding struct{ graph.FromSpeaker }

func (embedding) Name() string { return "embedding" }

func registry(t *testing.T) *graph.Registry {
	t.Helper()
	r := graph.NewRegistry(graph.Limits{})
	prototype := Busy{Who: []string{"a", "b"}, MinTurns: 99, Extra: raw(`{"x":1}`)}
	for _, err := range []error{r.RegisterCondition(prototype), r.RegisterCondition(Most{}), r.RegisterTarget(&Pick{})} {
		equal(t, err, nil)
	}
	return r
}

func TestCustomNodesRoundTrip(t *testing.T) {
	t.Parallel()
	r := registry(t)
	for _, tc := range []struct{ in, want string }{
		{`{"name":"busy","args":{"min_turns":2,"who":["z"],"note":"n","extra":[1.0],"Plain":true}}`, `{"name":"busy","args":{"min_turns":2,"who":["z"],"note":"n","extra":[1.0],"Plain":true}}`},
		{`{"name":"busy","args":{"min_turns":2,"note":null,"Plain":false}}`, `{"name":"busy","args":{"min_turns":2,"who":["a","b"],"note":null,"extra":{"x":1},"Plain":false}}`},
		{`{"name":"most","args":{"of":[{"name":"always"},{"name":"busy","args":{"min_turns":1,"note":"x","Plain":true,"who":[],"extra":null}}]}}`, `{"name":"most","args":{"of":[{"name":"always","args":{}},{"name":"busy","args":{"min_turns":1,"who":[],"note":"x","extra":null,"Plain":true}}]}}`},
	} {
		g, err := r.Load([]byte(`{"initial_speaker":"a","transitions":[{"when":` + tc.in + `,"then":{"name":"pick","args":{"place":1}}}]}`))
		equal(t, err, nil)
		want := `{"initial_speaker":"a","transitions":[{"when":` + tc.want + `,"then":{"name":"pick","args":{"place":1}},"priority":0}],"default_target":{"name":"terminate","args":{"reason":"after_work"}},"max_turns":null}`
		equal(t, object(t, g), want)
		again, err := r.Load([]byte(want))
		equal(t, err, nil)
		equal(t, object(t, again), want)
	}
}

func TestCustomNodesDecide(t *testing.T) {
	t.Parallel()
	g, err := registry(t).Load([]byte(`{"initial_speaker":"a","transitions":[{"when":{"name":"busy","args":{"min_turns":2,"note":null,"Plain":true}},"then":{"name":"pick","args":{"place":2}}}],"default_target":{"name":"stay"}}`))
	equal(t, err, nil)
	f := g.Start([]string{"a", "b", "c"}, "a", graph.Vars{})
	f, route := g.Advance(f, text("a"))
	equal(t, f.Expected, "a")
	equal(t, route.By, graph.ByDefault)
	// The second turn is counted before its condition is evaluated.
	f, route = g.Advance(f, text("a"))
	equal(t, f.Expected, "c")
	equal(t, route, graph.Route{By: graph.ByRule, Rule: 0, Decision: graph.Decision{Speaker: "c"}})
}

func TestCustomArgsAreChecked(t *testing.T) {
	t.Parallel()
	const takes = "it takes min_turns, who (optional), note, extra (optional), Plain"
	for _, tc := range []struct{ args, want string }{
		{`{"min_turns":1,"note":""}`, "graph: transitions[0].when.args: 'busy' lacks 'Plain'; " + takes},
		{`{"min_turns":1,"note":"","Plain":true,"secret":1}`, "graph: transitions[0].when.args: 'busy' does not take 'secret'; " + takes},
		{`{"min_turns":1,"note":"","Plain":true,"Skipped":1}`, "graph: transitions[0].when.args: 'busy' does not take 'Skipped'; " + takes},
		{`{"min_turns":"1","note":"","Plain":true}`, `graph: transitions[0].when.args.min_turns: must be a number that fits int, not "1"`},
		{`{"min_turns":1.5,"note":"","Plain":true}`, `graph: transitions[0].when.args.min_turns: must be a number that fits int, not 1.5`},
		{`{"min_turns":1,"note":"","Plain":1}`, `graph: transitions[0].when.args.Plain: must be a boolean, not 1`},
		{`{"min_turns":1,"note":"","Plain":true,"who":"all"}`, `graph: transitions[0].when.args.who: must be an array, not "all"`},
		{`{"min_turns":1,"note":"","Plain":true,"who":null}`, `graph: transitions[0].when.args.who: must not be null`},
	} {
		_, err := registry(t).Load([]byte(`{"initial_speaker":"a","transitions":[{"then":null,"when":{"name":"busy","args":` + tc.args + `}}]}`))
		refusedWith(t, err, tc.want)
	}
}

func TestOddArgsAreChecked(t *testing.T) {
	t.Parallel()
	r := graph.NewRegistry(graph.Limits{})
	equal(t, r.RegisterTarget(Odd{}), nil)
	for _, tc := range []struct{ args, want string }{
		{`{"ratio":"half"}`, `graph: default_target.args.ratio: must be a number that fits float64, not "half"`},
		{`{"table":[]}`, `graph: default_target.args.table: must be an object, not []`},
		{`{"shape":7}`, `graph: default_target.args.shape: must be an object, not 7`},
		{`{"ratio":1e999}`, `graph: default_target.args.ratio: must be a number that fits float64, not 1e999`},
		{`{"wave":7}`, `graph: default_target.args.wave: too complex`},
		{`{"pipe":7}`, `graph: default_target.args.pipe: must be a chan int, not 7`},
	} {
		_, err := r.Load([]byte(`{"initial_speaker":"a","default_target":{"name":"odd","args":` + tc.args + `}}`))
		refusedWith(t, err, tc.want)
	}
}

func TestPrototypesAreNotShared(t *testing.T) {
	t.Parallel()
	who := []string{"a", "b"}
	r := graph.NewRegistry(graph.Limits{})
	equal(t, r.RegisterCondition(Busy{Who: who}), nil)
	_, err := r.Load([]byte(`{"initial_speaker":"a","transitions":[{"then":null,"when":{"name":"busy","args":{"min_turns":1,"note":null,"Plain":true,"who":["x","y"]}}}]}`))
	equal(t, err, nil)
	equal(t, who, []string{"a", "b"})
}

func TestRegistrationIsRefused(t *testing.T) {
	t.Parallel()
	r := graph.NewRegistry(graph.Limits{})
	for _, tc := range []struct {
		prototype graph.Condition
		want      string
	}{
		{nil, "graph: cannot register <nil>: a node is a struct whose exported fields are its args"},
		{notAStruct("x"), "graph: cannot register graph_test.notAStruct: a node is a struct whose exported fields are its args"},
		{(*Most)(nil), "graph: cannot register *graph_test.Most: a node is a struct whose exported fields are its args"},
		{node{}, "graph: cannot register graph_test.node: its name is empty"},
		{node{"x"}, "graph: cannot register graph_test.node: its name must not depend on its fields"},
		{embedding{}, "graph: cannot register graph_test.embedding: it embeds FromSpeaker; name each arg as a field of its own"},
	} {
		err := r.RegisterCondition(tc.prototype)
		var refused *graph.Error
		equal(t, errors.As(err, &refused), true)
		equal(t, err.Error(), tc.want)
	}
	equal(t, r.RegisterTarget(node{}).Error(), "graph: cannot register graph_test.node: its name is empty")
}

func TestRegisteringAgainReplaces(t *testing.T) {
	t.Parallel()
	r := graph.NewRegistry(graph.Limits{})
	_, err := r.Load([]byte(`{"initial_speaker":"a","default_target":{"name":"mine"}}`))
	equal(t, err != nil, true)
	equal(t, r.RegisterTarget(mine{}), nil)
	load := func(name string) (graph.Target, error) {
		g, err := r.Load([]byte(`{"initial_speaker":"a","default_target":{"name":"` + name + `"}}`))
		if err != nil {
			return nil, err
		}
		return g.Default(), nil
	}
	got, err := load("mine")
	equal(t, err, nil)
	equal(t, got, graph.Target(mine{}))
	equal(t, r.RegisterTarget(other{}), nil)
	got, err = load("mine")
	equal(t, err, nil)
	equal(t, got, graph.Target(other{}))
}

type mine struct{}

func (mine) Name() string { return "mine" }

func (mine) Resolve(*graph.Facts, *graph.Turn) graph.Decision { return graph.Decision{} }

type other struct{}

func (other) Name() string { return "mine" }

func (other) Resolve(*graph.Facts, *graph.Turn) graph.Decision { return graph.Decision{End: true} }

func TestToolsAndExtensions(t *testing.T) {
	t.Parallel()
	tool := func(name string) graph.Condition { return graph.ToolCalled{ToolName: name} }
	g := build(t, rules("a",
		rule(tool("x"), to("b")),
		rule(graph.AllOf{Conditions: graph.Conditions{from("a"), graph.AnyOf{Conditions: graph.Conditions{tool("y"), tool("x")}}}}, to("b")),
		rule(Most{Of: graph.Conditions{tool("z")}}, &Pick{}),
		rule(graph.AllOf{}, end("x")),
	))
	equal(t, g.Tools(), []string{"x", "y", "z"})
	equal(t, g.Extensions(), []string{"all_of", "any_of", "most", "pick"})
	g = build(t, graph.Definition{InitialSpeaker: "a", Default: &Pick{}})
	equal(t, g.Extensions(), []string{"pick"})
	g = load(t, `{"initial_speaker":"a","transitions":[
		{"when":{"name":"always"},"then":{"name":"round_robin"}},
		{"when":{"name":"from_speaker","args":{"agent_id":"a"}},"then":{"name":"stay"}},
		{"when":{"name":"tool_called","args":{"tool_name":"t"}},"then":{"name":"revert_to_initiator"}},
		{"when":{"name":"context_equals","args":{"key":"k","value":1}},"then":{"name":"agent","args":{"agent_id":"a"}}}]}`)
	equal(t, g.Extensions(), []string(nil))
	g = load(t, `{"initial_speaker":"a","transitions":[
		{"when":{"name":"context_in","args":{"key":"k","values":[]}},"then":{"name":"stay"}},
		{"when":{"name":"context_threshold","args":{"key":"k","threshold":1}},"then":{"name":"stay"}}]}`)
	equal(t, g.Extensions(), []string{"context_in", "context_threshold"})
}

func TestWithNames(t *testing.T) {
	t.Parallel()
	g := load(t, `{"initial_speaker":"ann","transitions":[
		{"when":{"name":"from_speaker","args":{"agent_id":"bob"}},"then":{"name":"agent","args":{"agent_id":"ann"}},"priority":4},
		{"when":{"name":"all_of","args":{"conditions":[{"name":"any_of","args":{"conditions":[{"name":"from_speaker","args":{"agent_id":"ann"}}]}}]}},"then":{"name":"stay"}},
		{"when":{"name":"tool_called","args":{"tool_name":"ann"}},"then":{"name":"terminate","args":{"reason":"ann"}}}],
		"default_target":{"name":"agent","args":{"agent_id":"cyd"}},"max_turns":3}`)
	got, err := g.WithNames(map[string]string{"ann": "id-1", "bob": "ann", "id-1": "wrong"})
	equal(t, err, nil)
	want := `{"initial_speaker":"id-1","transitions":[` +
		`{"when":{"name":"from_speaker","args":{"agent_id":"ann"}},"then":{"name":"agent","args":{"agent_id":"id-1"}},"priority":4},` +
		`{"when":{"name":"all_of","args":{"conditions":[{"name":"any_of","args":{"conditions":[{"name":"from_speaker","args":{"agent_id":"id-1"}}]}}]}},"then":{"name":"stay","args":{}},"priority":0},` +
		`{"when":{"name":"tool_called","args":{"tool_name":"ann"}},"then":{"name":"terminate","args":{"reason":"ann"}},"priority":0}],` +
		`"default_target":{"name":"agent","args":{"agent_id":"cyd"}},"max_turns":3}`
	equal(t, object(t, got), want)
	equal(t, got.Source(), want)
}
