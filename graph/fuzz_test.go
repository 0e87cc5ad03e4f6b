package graph_test

import (
	"errors"
	"testing"

	"github.com/parley-hub/parley/graph"
)

// FuzzLoad: the decoder never panics, and what it accepts has one form that
// loads to itself.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(everything))
	for _, p := range patterns() {
		f.Add([]byte(p.graph))
	}
	f.Add([]byte(`{"initial_speaker":"\ud83d\ude00","transitions":[{"when":{"name":"context_threshold","args":{"key":"","threshold":-0.0e-0}},"then":null,"priority":-0}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := graph.NewRegistry(graph.Limits{})
		g, err := r.Load(data)
		if err != nil {
			var refused *graph.Error
			if !errors.As(err, &refused) {
				t.Fatalf("error of type %T", err)
			}
			return
		}
		text := object(t, g)
		again, err := r.Load([]byte(text))
		if err != nil {
			t.Fatalf("its own form is refused: %v\n%s", err, text)
		}
		equal(t, object(t, again), text)
		source, err := r.Load([]byte(g.Source()))
		equal(t, err, nil)
		equal(t, object(t, source), text)
		dumped, err := g.Dumps()
		equal(t, err, nil)
		if _, err := r.Load([]byte(dumped)); err != nil {
			t.Fatalf("its text form is refused: %v\n%s", err, dumped)
		}
		facts := g.Start([]string{"a", "b"}, "a", graph.Vars{})
		for range 3 {
			facts, _ = g.Advance(facts, static(facts.Expected, "t"))
		}
		graph.Check(g, []string{"a", "b"})
	})
}

// FuzzAdvance: no payload makes the routing step fail.
func FuzzAdvance(f *testing.F) {
	f.Add([]byte(`{"routing":{"kind":"handoff","tool":"t","target":"b"},"context_updates":{"set":{"k":1},"delete":["k"]},"body":"x"}`))
	f.Add([]byte(`{"set":{"k":{"a":[1,2]}},"delete":["k"]}`))
	f.Add([]byte(`{"context_updates":{"set":{"k":[[[]]]}},"context_updates":null}`))
	f.Add([]byte("{\"set\":{\"k\":\"\xff\"}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		g := load(t, `{"initial_speaker":"a","transitions":[
			{"when":{"name":"context_equals","args":{"key":"k","value":{"a":[1,2.0]}}},"then":{"name":"stay"}},
			{"when":{"name":"context_threshold","args":{"key":"k","threshold":1e3}},"then":{"name":"round_robin"}},
			{"when":{"name":"tool_called","args":{"tool_name":"t"}},"then":{"name":"agent","args":{"agent_id":"b"}}}]}`)
		start := g.Start([]string{"a", "b"}, "a", graph.Vars{})
		after, _ := g.Advance(start, contextSet("a", string(data)))
		after, route := g.Advance(after, packet("a", string(data)))
		equal(t, after.Turns, 1)
		again, _ := g.Advance(start, contextSet("a", string(data)))
		again, second := g.Advance(again, packet("a", string(data)))
		equal(t, again, after)
		equal(t, second, route)
	})
}

// FuzzFile: no file, script or alias makes reading fail badly.
func FuzzFile(f *testing.F) {
	f.Add([]byte(deskGraph), []byte(deskScript))
	f.Add([]byte(sample), []byte(`{"turns":[{"text":"x","repeat":3}]}`))
	f.Add([]byte("a: &a [*a]"), []byte("turns: &t [*t]"))
	f.Add([]byte("initial_speaker: \"\\ud800\""), []byte("? [a]\n: b"))
	f.Fuzz(func(t *testing.T, file, script []byte) {
		s, err := graph.ParseScript(script)
		g, fileErr := graph.ParseFile(file, graph.NewRegistry(graph.Limits{}))
		if err != nil || fileErr != nil {
			return
		}
		for i := range s.Turns {
			s.Turns[i].Repeat = min(s.Turns[i].Repeat, 3)
		}
		_, _ = graph.Simulate(g.Graph, g.Participants.IDs(), s)
	})
}
