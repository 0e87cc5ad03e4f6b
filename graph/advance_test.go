package graph_test

import (
	"testing"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/graph"
)

func TestEvaluationOrder(t *testing.T) {
	t.Parallel()
	at := func(priority int, agent string) graph.Transition {
		return graph.Transition{When: graph.Always{}, Then: to(agent), Priority: priority}
	}
	for _, tc := range []struct {
		name string
		list []graph.Transition
		want string
		rule int
	}{
		{"lower first", []graph.Transition{at(10, "p"), at(1, "q")}, "q", 1},
		{"ties in list order", []graph.Transition{at(0, "p"), at(0, "q")}, "p", 0},
		{"ties behind a higher one", []graph.Transition{at(5, "p"), at(2, "q"), at(2, "r")}, "q", 1},
		{"negative before zero", []graph.Transition{at(0, "p"), at(-1, "q")}, "q", 1},
		{"already in order", []graph.Transition{at(-3, "p"), at(0, "q"), at(4, "r")}, "p", 0},
		{"none", nil, "", graph.NoRule},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, rules("a", tc.list...))
			f := g.Start([]string{"a", "b"}, "a", graph.Vars{})
			d, rule := g.Evaluate(&f, graph.NewTurn(text("a")))
			equal(t, rule, tc.rule)
			equal(t, d.Speaker, tc.want)
		})
	}
}

func TestLongListsSortStably(t *testing.T) {
	t.Parallel()
	var list []graph.Transition
	for i := range 40 {
		list = append(list, graph.Transition{When: from("nobody"), Then: graph.Stay{}, Priority: 3 - i%4})
	}
	list[15] = graph.Transition{When: graph.Always{}, Then: to("x"), Priority: 0}
	list[19] = graph.Transition{When: graph.Always{}, Then: to("y"), Priority: 0}
	g := build(t, rules("a", list...))
	f := g.Start([]string{"a", "b"}, "a", graph.Vars{})
	_, rule := g.Evaluate(&f, graph.NewTurn(text("a")))
	equal(t, rule, 15)
}

func TestAdvance(t *testing.T) {
	t.Parallel()
	g := build(t, rules("a",
		rule(graph.ToolCalled{ToolName: "page"}, to("c")),
		rule(is("flag", "true"), to("b")),
		rule(is("gone", "null"), graph.Stay{}),
	))
	start := g.Start([]string{"a", "b", "c"}, "a", vars(t, `{"gone":1}`))
	rest := func(change func(*graph.Facts)) graph.Facts {
		f := graph.Facts{Order: []string{"a", "b", "c"}, Creator: "a", LastSpeaker: "a", LastEnvelope: "p-a", Turns: 1, Vars: vars(t, `{"gone":1}`)}
		change(&f)
		return f
	}
	speaks := func(who string) func(*graph.Facts) { return func(f *graph.Facts) { f.Expected = who } }
	ends := func(why string) func(*graph.Facts) {
		return func(f *graph.Facts) { f.Ended, f.Closing = true, why }
	}
	for _, tc := range []struct {
		name  string
		data  string
		want  graph.Facts
		route graph.Route
	}{
		{"default", `{}`, rest(ends("fell_off")), graph.Route{By: graph.ByDefault, Rule: -1, Decision: graph.Decision{End: true, Reason: "fell_off"}}},
		{"static handoff", `{"routing":{"kind":"handoff","tool":"page","reason":"r"}}`, rest(speaks("c")), graph.Route{By: graph.ByRule, Rule: 0, Decision: graph.Decision{Speaker: "c"}}},
		{"handoff with a target beats the rule", `{"routing":{"kind":"handoff","tool":"page","target":"b"}}`, rest(speaks("b")), graph.Route{By: graph.ByHandoff, Rule: -1, Decision: graph.Decision{Speaker: "b"}}},
		{"handoff to a stranger", `{"routing":{"kind":"handoff","target":"zoe"}}`, rest(speaks("zoe")), graph.Route{By: graph.ByHandoff, Rule: -1, Decision: graph.Decision{Speaker: "zoe"}}},
		{"empty target is none", `{"routing":{"kind":"handoff","tool":"page","target":""}}`, rest(speaks("c")), graph.Route{By: graph.ByRule, Rule: 0, Decision: graph.Decision{Speaker: "c"}}},
		{"null target is none", `{"routing":{"kind":"handoff","tool":"page","target":null}}`, rest(speaks("c")), graph.Route{By: graph.ByRule, Rule: 0, Decision: graph.Decision{Speaker: "c"}}},
		{"target of a text packet is ignored", `{"routing":{"kind":"text","target":"b"}}`, rest(ends("fell_off")), graph.Route{By: graph.ByDefault, Rule: -1, Decision: graph.Decision{End: true, Reason: "fell_off"}}},
		{"target without kind is ignored", `{"routing":{"target":"b"}}`, rest(ends("fell_off")), graph.Route{By: graph.ByDefault, Rule: -1, Decision: graph.Decision{End: true, Reason: "fell_off"}}},
		{"finish", `{"routing":{"kind":"finish","tool":"page","reason":"enough"}}`, rest(ends("enough")), graph.Route{By: graph.ByFinish, Rule: -1, Decision: graph.Decision{End: true, Reason: "enough"}}},
		{"finish beats a target", `{"routing":{"kind":"finish","target":"b"}}`, rest(ends("finished")), graph.Route{By: graph.ByFinish, Rule: -1, Decision: graph.Decision{End: true, Reason: "finished"}}},
		{"finish with empty reason", `{"routing":{"kind":"finish","reason":""}}`, rest(ends("finished")), graph.Route{By: graph.ByFinish, Rule: -1, Decision: graph.Decision{End: true, Reason: "finished"}}},
		{"updates come first", `{"context_updates":{"set":{"flag":true}}}`, rest(func(f *graph.Facts) { f.Expected, f.Vars = "b", vars(t, `{"gone":1,"flag":true}`) }), graph.Route{By: graph.ByRule, Rule: 1, Decision: graph.Decision{Speaker: "b"}}},
		{"deletes too", `{"context_updates":{"delete":["gone"]}}`, rest(func(f *graph.Facts) { f.Expected, f.Vars = "a", graph.Vars{} }), graph.Route{By: graph.ByRule, Rule: 2, Decision: graph.Decision{Speaker: "a"}}},
		{"nulls are nothing", `{"routing":null,"context_updates":null,"body":null}`, rest(ends("fell_off")), graph.Route{By: graph.ByDefault, Rule: -1, Decision: graph.Decision{End: true, Reason: "fell_off"}}},
		{"wrong types are nothing", `{"routing":{"kind":7,"tool":["page"],"target":{}},"context_updates":[1]}`, rest(ends("fell_off")), graph.Route{By: graph.ByDefault, Rule: -1, Decision: graph.Decision{End: true, Reason: "fell_off"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, route := g.Advance(start, packet("a", tc.data))
			equal(t, route, tc.route)
			equal(t, got, tc.want)
			// The facts before stay as they were.
			equal(t, start, g.Start([]string{"a", "b", "c"}, "a", vars(t, `{"gone":1}`)))
		})
	}
}

func TestAdvanceWithoutTurn(t *testing.T) {
	t.Parallel()
	g := build(t, rules("a", rule(graph.Always{}, to("b"))))
	f := g.Start([]string{"a", "b"}, "b", vars(t, `{"x":1}`))
	f.LastSpeaker, f.LastEnvelope, f.Turns, f.Closing = "b", "e9", 4, ""
	want := f
	want.Vars = vars(t, `{"y":[2]}`)
	got, route := g.Advance(f, contextSet("a", `{"set":{"y":[2]},"delete":["x"]}`))
	equal(t, got, want)
	equal(t, route, graph.Route{By: graph.ByContext, Rule: graph.NoRule})
	for _, eventType := range []string{"myapp.note", envelope.TypeOpened, envelope.TypeTaskStarted, envelope.TypeClosed, ""} {
		e := packet("a", `{"routing":{"kind":"finish"},"set":{"x":2},"context_updates":{"set":{"x":2}}}`)
		e.Type = eventType
		got, route := g.Advance(f, e)
		equal(t, got, f)
		equal(t, route, graph.Route{By: graph.ByNothing, Rule: graph.NoRule})
	}
}

func TestTurnsAreCounted(t *testing.T) {
	t.Parallel()
	g := build(t, rules("a", rule(graph.Always{}, graph.RoundRobin{})))
	f := g.Start([]string{"a", "b", "c"}, "a", graph.Vars{})
	equal(t, f, graph.Facts{Order: []string{"a", "b", "c"}, Creator: "a", Expected: "a"})
	for i, want := range []string{"b", "c", "a", "b"} {
		e := text(f.Expected)
		speaker := f.Expected
		f, _ = g.Advance(f, e)
		equal(t, f, graph.Facts{
			Order: []string{"a", "b", "c"}, Creator: "a", Expected: want,
			LastSpeaker: speaker, LastEnvelope: "e-" + speaker, Turns: i + 1,
		})
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		cap    *int
		facts  graph.Facts
		reason string
		closes bool
	}{
		{"goes on", nil, graph.Facts{Expected: "a", Turns: 1000}, "", false},
		{"graph's end", nil, graph.Facts{Ended: true, Closing: "done"}, "done", true},
		{"end without words", nil, graph.Facts{Ended: true}, "workflow_terminated", true},
		{"below the cap", new(3), graph.Facts{Expected: "a", Turns: 2}, "", false},
		{"at the cap", new(3), graph.Facts{Expected: "a", Turns: 3}, "max_turns", true},
		{"past the cap", new(3), graph.Facts{Expected: "a", Turns: 4}, "max_turns", true},
		{"the end goes before the cap", new(3), graph.Facts{Ended: true, Closing: "done", Turns: 3}, "done", true},
		{"silent end goes before the cap", new(3), graph.Facts{Ended: true, Turns: 3}, "workflow_terminated", true},
		{"cap of zero", new(0), graph.Facts{Expected: "a", Turns: 1}, "max_turns", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, graph.Definition{InitialSpeaker: "a", MaxTurns: tc.cap})
			reason, closes := g.Outcome(&tc.facts)
			equal(t, reason, tc.reason)
			equal(t, closes, tc.closes)
		})
	}
}

func TestByNames(t *testing.T) {
	t.Parallel()
	want := []string{"nothing", "context", "finish", "handoff", "rule", "default"}
	for i, name := range want {
		equal(t, graph.By(i).String(), name)
	}
	equal(t, graph.By(-1).String(), "by(-1)")
	equal(t, graph.By(6).String(), "by(6)")
}
