package graph_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/graph"
)

func TestCheckFindings(t *testing.T) {
	t.Parallel()
	abc := []string{"a", "b", "c"}
	all := func(cs ...graph.Condition) graph.Condition { return graph.AllOf{Conditions: cs} }
	either := func(cs ...graph.Condition) graph.Condition { return graph.AnyOf{Conditions: cs} }
	for _, tc := range []struct {
		name         string
		def          graph.Definition
		participants []string
		want         []string
	}{
		{"a sound graph", rules("a", rule(from("a"), to("b")), rule(from("b"), end("x"))), abc, nil},
		{"names cannot be judged without participants", rules("z", rule(from("y"), to("x"))), nil, nil},
		{"too few", rules("a"), []string{"a"}, []string{
			"error: participants: a workflow needs at least 2 participants, not 1 (participants)",
		}},
		{"initial speaker", rules("z"), abc, []string{
			"error: initial_speaker: 'z' is not in participants: a, b, c (initial_speaker)",
		}},
		{"unknown names", graph.Definition{InitialSpeaker: "a", Transitions: []graph.Transition{
			rule(from("y"), to("x")),
			rule(graph.AllOf{Conditions: graph.Conditions{from("a"), graph.AnyOf{Conditions: graph.Conditions{from("q"), from("a")}}}}, graph.Stay{}),
		}, Default: to("w")}, abc, []string{
			"warning: transitions[0].when: 'y' is not in participants: a, b, c (unknown_agent)",
			"warning: transitions[0].then: 'x' is not in participants: the channel would wait for somebody who is never told (outside_target)",
			"warning: transitions[1].when: 'q' is not in participants: a, b, c (unknown_agent)",
			"warning: default_target: 'w' is not in participants: the channel would wait for somebody who is never told (outside_target)",
		}},
		{"after always", rules("a", rule(graph.Always{}, to("b")), rule(from("a"), to("c"))), abc, []string{
			"warning: transitions[1]: never decides: transitions[0], always, is tried first and is true whenever this is (unreachable)",
		}},
		{"order of evaluation counts, not of the list", rules("a",
			graph.Transition{When: graph.Always{}, Then: to("b"), Priority: 1}, rule(from("a"), to("c"))), abc, nil},
		{"hidden by a lower priority", rules("a",
			graph.Transition{When: from("a"), Then: to("b"), Priority: 3}, graph.Transition{When: graph.Always{}, Then: to("b"), Priority: 2}), abc, []string{
			"warning: transitions[0]: never decides: transitions[1], always, is tried first and is true whenever this is (unreachable)",
		}},
		{"every participant has its rule", rules("a", rule(from("a"), to("b")), rule(from("b"), to("c")), rule(from("c"), to("a")), rule(graph.ToolCalled{ToolName: "t"}, to("a"))), abc, []string{
			"warning: transitions[3]: never decides: earlier rules take the turns of every participant (unreachable)",
		}},
		{"one participant has none", rules("a", rule(from("a"), to("b")), rule(from("b"), to("c")), rule(graph.ToolCalled{ToolName: "t"}, to("a"))), abc, nil},
		{"never true", rules("a", rule(graph.AnyOf{}, to("b"))), abc, []string{
			"warning: transitions[0]: any_of() can never be true (unreachable)",
		}},
		{"cap", graph.Definition{InitialSpeaker: "a", MaxTurns: new(0)}, abc, []string{
			"warning: max_turns: 0 turns allow the first turn and close after it; leave it out for no cap (max_turns)",
		}},
		{"cap of one", graph.Definition{InitialSpeaker: "a", MaxTurns: new(1)}, abc, nil},

		{"sticky before its return rule", rules("a", rule(is("k", "1"), to("b")), rule(from("b"), to("a"))), abc, []string{
			"warning: transitions[0]: context_equals(k = 1) stays true after 'b' has spoken and selects 'b' again: transitions[1], from_speaker(b), must be tried before it, or the key be deleted (sticky_loop)",
		}},
		{"sticky behind its return rule", rules("a", rule(from("b"), to("a")), rule(is("k", "1"), to("b"))), abc, nil},
		{"sticky behind by priority", rules("a",
			graph.Transition{When: is("k", "1"), Then: to("b"), Priority: 1}, rule(from("b"), to("a"))), abc, nil},
		{"sticky without return rule", rules("a", rule(is("k", "1"), to("b")), rule(from("a"), to("c"))), abc, []string{
			"warning: transitions[0]: context_equals(k = 1) stays true after 'b' has spoken and selects 'b' again: put a rule from_speaker(b) before it, or delete the key (sticky_loop)",
		}},
		{"threshold and in stick too", rules("a",
			rule(graph.ContextThreshold{Key: "n", Threshold: "3"}, to("b")),
			rule(graph.ContextIn{Key: "k", Values: []jsontext.Value{raw("1"), raw("2")}}, to("c"))), abc, []string{
			"warning: transitions[0]: context_threshold(n >= 3) stays true after 'b' has spoken and selects 'b' again: put a rule from_speaker(b) before it, or delete the key (sticky_loop)",
			"warning: transitions[1]: context_in(k in 1, 2) stays true after 'c' has spoken and selects 'c' again: put a rule from_speaker(c) before it, or delete the key (sticky_loop)",
		}},
		{"sticky to the creator", rules("b", rule(is("k", "1"), graph.RevertToInitiator{})), abc, []string{
			"warning: transitions[0]: context_equals(k = 1) stays true after 'a' has spoken and selects 'a' again: put a rule from_speaker(a) before it, or delete the key (sticky_loop)",
		}},
		{"creator unknown", rules("b", rule(is("k", "1"), graph.RevertToInitiator{})), nil, nil},
		{"bound to another speaker", rules("a", rule(graph.AllOf{Conditions: graph.Conditions{from("a"), is("k", "1")}}, to("b"))), abc, nil},
		{"bound to the same speaker", rules("a", rule(graph.AllOf{Conditions: graph.Conditions{from("b"), is("k", "1")}}, to("b"))), abc, []string{
			"warning: transitions[0]: all_of(from_speaker(b), context_equals(k = 1)) stays true after 'b' has spoken and selects 'b' again: put a rule from_speaker(b) before it, or delete the key (sticky_loop)",
		}},
		{"a rule on the same flag takes its turn", rules("a", rule(graph.AllOf{Conditions: graph.Conditions{from("b"), is("k", "1")}}, end("x")), rule(is("k", "1"), to("b"))), abc, nil},
		{"a rule on another flag does not", rules("a", rule(graph.AllOf{Conditions: graph.Conditions{from("b"), is("done", "true")}}, end("x")), rule(is("k", "1"), to("b"))), abc, []string{
			"warning: transitions[1]: context_equals(k = 1) stays true after 'b' has spoken and selects 'b' again: put a rule from_speaker(b) before it, or delete the key (sticky_loop)",
		}},
		{"context rules that end or go round do not stick", rules("a", rule(is("k", "1"), end("x")), rule(is("k", "3"), graph.RoundRobin{})), abc, nil},
		{"staying sticks", rules("a", rule(is("k", "2"), graph.Stay{})), abc, []string{
			"warning: transitions[0]: context_equals(k = 2) stays true and selects the same speaker again and again: put a rule from_speaker for whom it keeps before it, or delete the key (sticky_loop)",
		}},
		{"staying sticks, whoever takes part", rules("a", rule(from("a"), to("b")), rule(all(from("b"), is("k", "2")), graph.Stay{})), nil, []string{
			"warning: transitions[1]: all_of(from_speaker(b), context_equals(k = 2)) stays true and selects the same speaker again and again: put a rule from_speaker for whom it keeps before it, or delete the key (sticky_loop)",
		}},
		{"staying without a context does not", rules("a", rule(from("a"), graph.Stay{}), rule(graph.ToolCalled{ToolName: "t"}, graph.Stay{})), abc, nil},
		{"an earlier rule takes the stayer's turn", rules("a", rule(from("b"), to("a")), rule(all(from("b"), is("k", "2")), graph.Stay{})), abc, []string{
			"warning: transitions[1]: never decides: transitions[0], from_speaker(b), is tried first and is true whenever this is (unreachable)",
		}},
		{"earlier rules take every stayer's turn", rules("a", rule(from("a"), to("b")), rule(from("b"), to("c")), rule(from("c"), to("a")), rule(is("k", "2"), graph.Stay{})), abc, []string{
			"warning: transitions[3]: never decides: earlier rules take the turns of every participant (unreachable)",
		}},
		{"a rule that waits for a tool does not stick", rules("a",
			rule(all(is("k", "1"), graph.ToolCalled{ToolName: "t"}), to("b")),
			rule(all(is("k", "2"), either(graph.ToolCalled{ToolName: "t"}, graph.ToolCalled{ToolName: "u"})), to("b")),
			rule(either(from("a"), all(is("k", "3"), graph.ToolCalled{ToolName: "t"})), to("b")),
			rule(all(is("k", "4"), graph.ToolCalled{ToolName: "t"}), graph.Stay{})), abc, nil},
		{"one that may do without the tool does", rules("a", rule(either(graph.ToolCalled{ToolName: "t"}, is("k", "1")), to("b")),
			rule(all(is("j", "1"), either(graph.ToolCalled{ToolName: "u"}, from("c"))), to("c"))), abc, []string{
			"warning: transitions[0]: any_of(tool_called(t), context_equals(k = 1)) stays true after 'b' has spoken and selects 'b' again: put a rule from_speaker(b) before it, or delete the key (sticky_loop)",
			"warning: transitions[1]: all_of(context_equals(j = 1), any_of(tool_called(u), from_speaker(c))) stays true after 'c' has spoken and selects 'c' again: put a rule from_speaker(c) before it, or delete the key (sticky_loop)",
		}},
		{"an earlier rule that waits for a tool takes no turn without it", rules("a", rule(all(from("b"), graph.ToolCalled{ToolName: "t"}), end("x")), rule(is("k", "1"), to("b"))), abc, []string{
			"warning: transitions[1]: context_equals(k = 1) stays true after 'b' has spoken and selects 'b' again: put a rule from_speaker(b) before it, or delete the key (sticky_loop)",
		}},
		{"listed twice", rules("a"), []string{"a", "b", "a"}, []string{
			"error: participants: participant 'a' is listed twice (participants)",
		}},
		{"a stranger may speak where a rule leads to it", rules("a", rule(from("a"), to("z")), rule(from("b"), graph.Stay{}), rule(from("z"), to("b")), rule(graph.ToolCalled{ToolName: "t"}, to("a"))), []string{"a", "b"}, []string{
			"warning: transitions[0].then: 'z' is not in participants: the channel would wait for somebody who is never told (outside_target)",
			"warning: transitions[2].when: 'z' is not in participants: a, b (unknown_agent)",
		}},
		{"a stranger may speak where the default leads to it", graph.Definition{InitialSpeaker: "a", Transitions: []graph.Transition{
			rule(from("a"), to("b")), rule(from("b"), to("a")), rule(graph.ToolCalled{ToolName: "t"}, to("a")),
		}, Default: to("z")}, []string{"a", "b"}, []string{
			"warning: default_target: 'z' is not in participants: the channel would wait for somebody who is never told (outside_target)",
		}},
		{"a stranger may speak where a custom target leads", rules("a", rule(from("a"), Pickle{}), rule(from("b"), to("a")), rule(graph.ToolCalled{ToolName: "t"}, to("a"))), []string{"a", "b"}, nil},
		{"a stranger may speak where it is handed to", rules("a", rule(from("a"), to("b")), rule(from("b"), graph.Stay{}), rule(all(from("z"), is("k", "1")), to("b")), rule(either(from("y"), from("b")), to("b"))), []string{"a", "b"}, []string{
			"warning: transitions[2].when: 'z' is not in participants: a, b (unknown_agent)",
			"warning: transitions[3].when: 'y' is not in participants: a, b (unknown_agent)",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range graph.Check(build(t, tc.def), tc.participants) {
				got = append(got, f.String())
			}
			equal(t, got, tc.want)
		})
	}
}

// TestUnreachable lists what one condition says of another: the later rule is
// found unreachable exactly where the earlier one is true whenever it is.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	all := func(cs ...graph.Condition) graph.Condition { return graph.AllOf{Conditions: cs} }
	either := func(cs ...graph.Condition) graph.Condition { return graph.AnyOf{Conditions: cs} }
	in := func(key string, values ...string) graph.Condition {
		c := graph.ContextIn{Key: key}
		for _, v := range values {
			c.Values = append(c.Values, raw(v))
		}
		return c
	}
	atLeast := func(key, n string) graph.Condition {
		return graph.ContextThreshold{Key: key, Threshold: graph.Number(n)}
	}
	tool := func(name string) graph.Condition { return graph.ToolCalled{ToolName: name} }
	busy := func(n int) graph.Condition { return Busy{MinTurns: n} }
	for _, tc := range []struct {
		earlier, later graph.Condition
		want           bool
	}{
		{from("a"), from("a"), true},
		{from("a"), from("b"), false},
		{tool("t"), tool("t"), true},
		{tool("t"), tool("u"), false},
		{from("t"), tool("t"), false},
		{tool("a"), from("a"), false},
		{from("a"), graph.Always{}, false},
		{is("k", "1"), is("k", "1.0"), true},
		{is("k", "1"), is("k", "2"), false},
		{is("k", "1"), is("j", "1"), false},
		{in("k", "1", "2"), is("k", "2"), true},
		{in("k", "1", "2"), is("k", "3"), false},
		{in("k", "1", "2"), is("j", "1"), false},
		{is("k", "1"), in("k", "1"), true},
		{is("k", "1"), in("k", "1", "2"), false},
		{in("k", "1", "2", "3"), in("k", "3", "1"), true},
		{atLeast("n", "3"), is("n", "3"), true},
		{atLeast("n", "3"), is("n", "2.9"), false},
		{atLeast("n", "3"), is("m", "3"), false},
		{atLeast("n", "3"), in("n", "4", "5"), true},
		{atLeast("n", "3"), in("n", "4", "2"), false},
		{atLeast("n", "0"), is("n", "null"), false},
		{atLeast("n", "3"), atLeast("n", "4"), true},
		{atLeast("n", "3"), atLeast("n", "3.0"), true},
		{atLeast("n", "3"), atLeast("n", "2"), false},
		{atLeast("n", "3"), atLeast("m", "4"), false},
		{atLeast("n", "3"), from("a"), false},
		{is("n", "3"), atLeast("n", "3"), false},
		{from("a"), all(from("a"), is("k", "1")), true},
		{from("b"), all(from("a"), is("k", "1")), false},
		{all(from("a"), is("k", "1")), from("a"), false},
		{all(from("a"), is("k", "1")), all(is("k", "1"), from("a")), true},
		{all(from("a"), is("k", "1")), all(is("k", "1"), from("a"), tool("t")), true},
		{all(), from("a"), true},
		{either(from("a"), from("b")), from("b"), true},
		{either(from("a"), from("b")), from("c"), false},
		{either(from("a"), from("b")), either(from("b"), from("a")), true},
		{either(from("a"), from("b")), either(from("b"), from("c")), false},
		{from("a"), either(from("a"), from("b")), false},
		{from("a"), either(from("a"), all(from("a"), tool("t"))), true},
		{either(from("a"), tool("t")), all(is("k", "1"), tool("t")), true},
		{busy(3), busy(3), true},
		{busy(3), busy(4), false},
		{busy(3), from("a"), false},
		{from("a"), busy(3), false},
	} {
		t.Run(fmt.Sprint(tc.earlier, " then ", tc.later), func(t *testing.T) {
			t.Parallel()
			g := build(t, rules("a", rule(tc.earlier, end("x")), rule(tc.later, end("y"))))
			equal(t, unreachable(g, 1), tc.want)
		})
	}
}

func unreachable(g *graph.Graph, i int) bool {
	for _, f := range graph.Check(g, nil) {
		if f.Code == graph.CodeUnreachable && f.Path == fmt.Sprintf("transitions[%d]", i) {
			return true
		}
	}
	return false
}

func TestNeverTrue(t *testing.T) {
	t.Parallel()
	all := func(cs ...graph.Condition) graph.Condition { return graph.AllOf{Conditions: cs} }
	either := func(cs ...graph.Condition) graph.Condition { return graph.AnyOf{Conditions: cs} }
	tool := func(name string) graph.Condition { return graph.ToolCalled{ToolName: name} }
	in := func(values ...string) graph.Condition {
		c := graph.ContextIn{Key: "k"}
		for _, v := range values {
			c.Values = append(c.Values, raw(v))
		}
		return c
	}
	atLeast := func(n string) graph.Condition {
		return graph.ContextThreshold{Key: "k", Threshold: graph.Number(n)}
	}
	for _, tc := range []struct {
		when graph.Condition
		want bool
	}{
		{graph.Always{}, false},
		{in(), true},
		{in("1"), false},
		{tool(""), true},
		{tool("t"), false},
		{from(""), false},
		{either(), true},
		{either(in(), tool("")), true},
		{either(in(), tool("t")), false},
		{all(), false},
		{all(from("a"), in()), true},
		{all(from("a"), from("a")), false},
		{all(from("a"), tool("t"), from("b")), true},
		{all(from("a"), all(tool("t"), all(from("b")))), true},
		{all(tool("t"), tool("u")), true},
		{all(tool("t"), tool("t")), false},
		{all(tool("a"), from("b")), false},
		{all(is("k", "1"), is("k", "2")), true},
		{all(is("k", "1"), is("k", "1.0")), false},
		{all(is("k", "1"), is("j", "2")), false},
		{all(is("k", "1"), in("2", "1")), false},
		{all(is("k", "1"), in("2", "3")), true},
		{all(in("2", "3"), is("k", "1")), true},
		{all(in("1", "2"), in("3", "4")), true},
		{all(in("1", "2"), in("2", "3")), false},
		{all(atLeast("3"), is("k", "2")), true},
		{all(is("k", "2"), atLeast("3")), true},
		{all(is("k", "3"), atLeast("3")), false},
		{all(is("k", `"x"`), atLeast("3")), true},
		{all(is("k", "null"), atLeast("0")), false},
		{all(is("k", "null"), atLeast("1")), true},
		{all(is("k", "false"), atLeast("0")), true},
		{all(in("1", "9"), atLeast("3")), false},
		{all(atLeast("3"), atLeast("9")), false},
		{all(from("a"), is("k", "1")), false},
		{all(is("k", "1"), from("a")), false},
		{all(Busy{}, is("k", "1")), false},
		{all(either(), from("a")), true},
	} {
		t.Run(fmt.Sprint(tc.when), func(t *testing.T) {
			t.Parallel()
			equal(t, unreachable(build(t, rules("a", rule(tc.when, end("x")))), 0), tc.want)
		})
	}
}

// TestCheckIsBounded feeds the checker what would take it years.
func TestCheckIsBounded(t *testing.T) {
	t.Parallel()
	nest := func(outer, inner func(...graph.Condition) graph.Condition, prefix string) graph.Condition {
		c := from(prefix)
		for i := range 14 {
			leaf := from(fmt.Sprint(prefix, i))
			if i%2 == 0 {
				c = outer(leaf, c)
			} else {
				c = inner(c, leaf)
			}
		}
		return c
	}
	all := func(cs ...graph.Condition) graph.Condition { return graph.AllOf{Conditions: cs} }
	either := func(cs ...graph.Condition) graph.Condition { return graph.AnyOf{Conditions: cs} }
	var list []graph.Transition
	for i := range 200 {
		list = append(list, rule(nest(all, either, fmt.Sprint("x", i)), to("a")), rule(nest(either, all, fmt.Sprint("y", i)), to("a")))
	}
	for i := range 3600 {
		list = append(list, rule(from(fmt.Sprint("z", i)), to("a")))
	}
	g := build(t, rules("a", list...))
	begin := time.Now()
	graph.Check(g, nil)
	if took := time.Since(begin); took > 5*time.Second {
		t.Fatalf("took %s", took)
	}
	// It still reports what it can prove cheaply.
	g = build(t, rules("a", append([]graph.Transition{rule(graph.Always{}, to("b"))}, list[:20]...)...))
	equal(t, strings.Contains(fmt.Sprint(graph.Check(g, nil)), "transitions[1]: never decides"), true)
}
