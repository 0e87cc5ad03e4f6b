package graph_test

import (
	"fmt"

	"github.com/parley-hub/parley/graph"
)

// A pipeline of three, played through.
func ExampleSimulate() {
	g, err := graph.NewSequence([]string{"desk", "checker", "courier"})
	if err != nil {
		fmt.Println(err)
		return
	}
	script, err := graph.ParseScript([]byte(`
turns:
  - text: a parcel for Ghent
  - body: checked
  - body: delivered
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	trace, err := graph.Simulate(g, []string{"desk", "checker", "courier"}, script)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(trace)
	// Output:
	//   1  desk ag2.msg.text; transitions[0]: from_speaker(desk) → agent(checker); checker is expected
	//   2  checker ag2.packet; transitions[1]: from_speaker(checker) → agent(courier); courier is expected
	//   3  courier ag2.packet; default → terminate(sequence_complete); closed: sequence_complete
	// closed: sequence_complete, after 3 turns
}

// Quiet fires while few turns were taken.
type Quiet struct {
	Below int `json:"below"`
}

func (Quiet) Name() string { return "quiet" }

func (q Quiet) Evaluate(f *graph.Facts, _ *graph.Turn) bool { return f.Turns < q.Below }

// A condition of one's own is a struct; its fields are the args of its JSON.
func ExampleRegistry_RegisterCondition() {
	r := graph.NewRegistry(graph.Limits{})
	if err := r.RegisterCondition(Quiet{}); err != nil {
		fmt.Println(err)
		return
	}
	g, err := r.Load([]byte(`{"initial_speaker":"ann","transitions":[
		{"when":{"name":"quiet","args":{"below":3}},"then":{"name":"round_robin"}}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	f := g.Start([]string{"ann", "bob"}, "ann", graph.Vars{})
	fmt.Println(f.Expected, g.Transition(0).When)
	// Output: ann {3}
}

// Findings come before a channel opens.
func ExampleCheck() {
	g, err := graph.Load([]byte(`{"initial_speaker":"ann","transitions":[
		{"when":{"name":"context_equals","args":{"key":"urgent","value":true}},"then":{"name":"agent","args":{"agent_id":"bob"}}},
		{"when":{"name":"from_speaker","args":{"agent_id":"bob"}},"then":{"name":"terminate"}}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, finding := range graph.Check(g, []string{"ann", "bob"}) {
		fmt.Println(finding)
	}
	// Output: warning: transitions[0]: context_equals(urgent = true) stays true after 'bob' has spoken and selects 'bob' again: transitions[1], from_speaker(bob), must be tried before it, or the key be deleted (sticky_loop)
}
