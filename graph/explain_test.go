package graph_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/graph"
)

// What is explained is what happens: the route is Advance's, the condition that
// is said to have decided holds, and none that was passed over does.
func TestExplanationsAgreeWithAdvance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g, err := graph.New(genDefinition().Draw(t, "graph"))
		if err != nil {
			t.Fatal(err)
		}
		f := g.Start([]string{"a", "b", "c"}, "a", graph.Vars{})
		for range rapid.IntRange(1, 8).Draw(t, "turns") {
			e := genEnvelope().Draw(t, "envelope")
			next, route := g.Advance(f, e)
			why := g.Explain(f, e)
			if diff := cmp.Diff(route, why.Route); diff != "" {
				t.Fatalf("the route differs from Advance's:\n%s", diff)
			}
			if (why.Because != nil) != (route.By == graph.ByRule) {
				t.Fatalf("by %s, because %v", route.By, why.Because)
			}
			if why.Because != nil {
				checkExplained(t, *why.Because)
				if !why.Because.Holds {
					t.Fatal("the deciding condition is said not to hold")
				}
			}
			for _, p := range why.Passed {
				checkExplained(t, p.Because)
				if p.Because.Holds || p.Rule == route.Rule {
					t.Fatalf("rule %d was passed over and is said to hold", p.Rule)
				}
			}
			f = next
		}
	})
}

// checkExplained holds all_of and any_of against what is nested in them.
func checkExplained(t *rapid.T, x graph.Explained) {
	all, some := true, false
	for _, nested := range x.Of {
		checkExplained(t, nested)
		all, some = all && nested.Holds, some || nested.Holds
	}
	switch {
	case x.Name == "all_of" && x.Holds != all, x.Name == "any_of" && x.Holds != some:
		t.Fatalf("%s holds: %v, its parts: %+v", x.Name, x.Holds, x.Of)
	}
}

func TestExplanationSaysWhatWasRead(t *testing.T) {
	t.Parallel()
	g, err := graph.New(graph.Definition{InitialSpeaker: "a", Transitions: []graph.Transition{
		{When: from("b"), Then: graph.Agent{AgentID: "c"}},
		{When: graph.AllOf{Conditions: graph.Conditions{from("a"), is("area", `"network"`)}}, Then: graph.Agent{AgentID: "b"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	vars, err := graph.ParseVars([]byte(`{"area":"network"}`))
	if err != nil {
		t.Fatal(err)
	}
	why := g.Explain(g.Start([]string{"a", "b", "c"}, "a", vars), text("a"))
	if why.Rule != 1 || why.Because == nil || len(why.Passed) != 1 || why.Passed[0].Rule != 0 {
		t.Fatalf("%+v", why)
	}
	read := why.Because.Of[1].Read
	if len(read) != 1 || read[0].Key != "area" || string(read[0].Value) != `"network"` {
		t.Errorf("it read %+v", read)
	}
	if got := why.Passed[0].Because.Read[0]; got.What != "speaker" || string(got.Value) != `"a"` {
		t.Errorf("the rule passed over read %+v", got)
	}
}

func TestLayoutMarksThePathAndWhoseTurnItIs(t *testing.T) {
	t.Parallel()
	g, err := graph.New(graph.Definition{InitialSpeaker: "a", Transitions: []graph.Transition{{When: from("a"), Then: graph.Agent{AgentID: "b"}, Priority: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	l := graph.LayOut(g, graph.Drawing{Names: map[string]string{"a": "ada"}, Path: []graph.Hop{{Turn: 1, From: "a", To: "b", By: graph.ByRule, Rule: 0}}}, "b")
	nodes := map[string]graph.Node{}
	for _, n := range l.Nodes {
		nodes[n.Label] = n
	}
	if n := nodes["ada"]; n.Agent != "a" || n.Kind != "agent" || !n.Taken || n.Current {
		t.Errorf("ada is %+v", n)
	}
	if !nodes["b"].Current {
		t.Error("it is b's turn")
	}
	var rule *graph.Edge
	for i, e := range l.Edges {
		if e.Kind == "rule" {
			rule = &l.Edges[i]
		}
	}
	if rule == nil || *rule.Rule != 0 || rule.Priority != 2 || !cmp.Equal(rule.Turns, []int{1}) || rule.From != nodes["ada"].ID || rule.To != nodes["b"].ID {
		t.Errorf("the rule's arrow is %+v", rule)
	}
}
