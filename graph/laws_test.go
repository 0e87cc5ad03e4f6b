package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/graph"
)

var agents = rapid.SampledFrom([]string{"a", "b", "c", "stranger", "", "é\"\\"})

func genValue() *rapid.Generator[string] {
	scalar := rapid.SampledFrom([]string{
		"null", "true", "false", "0", "-0", "1", "1.0", "1e0", "10e-1", "2", "1e400", "-7.250", "9007199254740993",
		`""`, `"a"`, `"\u0061"`, `"é"`, `"1"`,
	})
	return rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			return "[" + strings.Join(rapid.SliceOfN(scalar, 0, 3).Draw(t, "items"), ",") + "]"
		case 1:
			return `{"x":` + scalar.Draw(t, "x") + `,"y":[` + scalar.Draw(t, "y") + `]}`
		}
		return scalar.Draw(t, "scalar")
	})
}

func genCondition(depth int) *rapid.Generator[graph.Condition] {
	keys := rapid.SampledFrom([]string{"k", "n", ""})
	return rapid.Custom(func(t *rapid.T) graph.Condition {
		kinds := 6
		if depth > 0 {
			kinds = 8
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "condition") {
		case 0:
			return graph.Always{}
		case 1:
			return from(agents.Draw(t, "agent"))
		case 2:
			return graph.ToolCalled{ToolName: rapid.SampledFrom([]string{"t", "u", ""}).Draw(t, "tool")}
		case 3:
			return is(keys.Draw(t, "key"), genValue().Draw(t, "value"))
		case 4:
			n := rapid.SampledFrom([]string{"0", "1", "2.50", "-3", "1e99"}).Draw(t, "threshold")
			return graph.ContextThreshold{Key: keys.Draw(t, "key"), Threshold: graph.Number(n)}
		case 5:
			in := graph.ContextIn{Key: keys.Draw(t, "key"), Values: []jsontext.Value{}}
			for _, v := range rapid.SliceOfN(genValue(), 0, 3).Draw(t, "values") {
				in.Values = append(in.Values, raw(v))
			}
			return in
		case 6:
			return graph.AllOf{Conditions: rapid.SliceOfN(genCondition(depth-1), 0, 3).Draw(t, "all")}
		}
		return graph.AnyOf{Conditions: rapid.SliceOfN(genCondition(depth-1), 0, 3).Draw(t, "any")}
	})
}

func genTarget() *rapid.Generator[graph.Target] {
	return rapid.Custom(func(t *rapid.T) graph.Target {
		return []graph.Target{
			to(agents.Draw(t, "agent")),
			graph.RoundRobin{},
			graph.Stay{},
			graph.RevertToInitiator{},
			end(rapid.SampledFrom([]string{"", "done", "after_work"}).Draw(t, "reason")),
		}[rapid.IntRange(0, 4).Draw(t, "target")]
	})
}

func genDefinition() *rapid.Generator[graph.Definition] {
	return rapid.Custom(func(t *rapid.T) graph.Definition {
		d := graph.Definition{InitialSpeaker: agents.Draw(t, "initial"), Default: genTarget().Draw(t, "default")}
		for range rapid.IntRange(0, 6).Draw(t, "transitions") {
			d.Transitions = append(d.Transitions, graph.Transition{
				When:     genCondition(2).Draw(t, "when"),
				Then:     genTarget().Draw(t, "then"),
				Priority: rapid.IntRange(-2, 2).Draw(t, "priority"),
			})
		}
		if rapid.Bool().Draw(t, "capped") {
			d.MaxTurns = new(rapid.IntRange(-1, 6).Draw(t, "cap"))
		}
		return d
	})
}

func genEnvelope() *rapid.Generator[*envelope.Envelope] {
	return rapid.Custom(func(t *rapid.T) *envelope.Envelope {
		sender := agents.Draw(t, "sender")
		update := fmt.Sprintf(`{"set":{"k":%s,"n":%s},"delete":["n"]}`, genValue().Draw(t, "k"), genValue().Draw(t, "n"))
		switch rapid.IntRange(0, 7).Draw(t, "envelope") {
		case 0:
			return contextSet(sender, update)
		case 1:
			return static(sender, "t")
		case 2:
			return packet(sender, `{"routing":{"kind":"handoff","target":"b"},"context_updates":`+update+`}`)
		case 3:
			return packet(sender, `{"routing":{"kind":"finish"}}`)
		case 4:
			return packet(sender, `{"routing":{"kind":"text"},"context_updates":`+update+`}`)
		case 5:
			return packet(sender, string(rapid.SliceOf(rapid.Byte()).Draw(t, "noise")))
		case 6:
			return contextSet(sender, string(rapid.SliceOf(rapid.Byte()).Draw(t, "noise")))
		}
		return text(sender)
	})
}

func TestLawObjectFormRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := genDefinition().Draw(t, "definition")
		g := build(t, d)
		text := object(t, g)
		again := load(t, text)
		if got := object(t, again); got != text {
			t.Fatalf("%s\nbecame %s", text, got)
		}
		if diff := cmp.Diff(g.Definition(), again.Definition(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("definition changed:\n%s", diff)
		}
		dumped, err := g.Dumps()
		if err != nil {
			t.Fatalf("dumps: %v", err)
		}
		sorted, err := load(t, dumped).Dumps()
		if err != nil || sorted != dumped {
			t.Fatalf("%s\nbecame %s, %v", dumped, sorted, err)
		}
	})
}

// TestLawEvaluation compares the graph with the rule as the specification
// words it: a stable sort, the first true condition, else the default.
func TestLawEvaluation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := genDefinition().Draw(t, "definition")
		g := build(t, d)
		f := g.Start([]string{"a", "b", "c"}, "c", vars(t, `{"k":`+genValue().Draw(t, "k")+`}`))
		f.LastSpeaker = "a"
		turn := graph.NewTurn(genEnvelope().Draw(t, "envelope"))
		want, wantRule := d.Default.Resolve(&f, turn), graph.NoRule
		for priority := 2; priority >= -2; priority-- {
			for i := len(d.Transitions) - 1; i >= 0; i-- {
				if c := d.Transitions[i]; c.Priority == priority && c.When.Evaluate(&f, turn) {
					want, wantRule = c.Then.Resolve(&f, turn), i
				}
			}
		}
		got, rule := g.Evaluate(&f, turn)
		if got != want || rule != wantRule {
			t.Fatalf("got %+v by %d, want %+v by %d", got, rule, want, wantRule)
		}
	})
}

// TestLawAdvanceIsPure plays the same envelopes twice, once on a graph that
// went through its JSON: same facts, same routes, and old facts never change.
func TestLawAdvanceIsPure(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := build(t, genDefinition().Draw(t, "definition"))
		again := load(t, object(t, g))
		order := []string{"a", "b", "c"}
		one, two := g.Start(order, "a", graph.Vars{}), again.Start(order, "a", graph.Vars{})
		for _, e := range rapid.SliceOfN(genEnvelope(), 0, 12).Draw(t, "envelopes") {
			before := one
			vars, _ := one.Vars.MarshalJSON()
			next, route := g.Advance(one, e)
			if now, _ := before.Vars.MarshalJSON(); string(now) != string(vars) {
				t.Fatalf("variables changed in place: %s to %s", vars, now)
			}
			other, otherRoute := again.Advance(two, e)
			if diff := cmp.Diff(next, other); diff != "" || route != otherRoute {
				t.Fatalf("two folds differ: %v %v\n%s", route, otherRoute, diff)
			}
			turn := e.Type != envelope.TypeContextSet
			if turn != (next.Turns == one.Turns+1) || turn != (route.By > graph.ByContext) {
				t.Fatalf("%s led to %v and %d turns after %d", e.Type, route, next.Turns, one.Turns)
			}
			if next.Ended && next.Expected != "" {
				t.Fatalf("ended, yet expects %q", next.Expected)
			}
			if n := next.Vars.Len(); n > 2 && !strings.Contains(string(e.Data), "set") && one.Vars.Len() <= 2 {
				t.Fatalf("%d variables out of nothing", n)
			}
			one, two = next, other
		}
	})
}

// TestLawCheckIsRight: a rule that the checker calls unreachable never decides.
func TestLawCheckIsRight(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := build(t, genDefinition().Draw(t, "definition"))
		dead := map[int]bool{}
		for _, f := range graph.Check(g, nil) {
			var i int
			if _, err := fmt.Sscanf(f.Path, "transitions[%d]", &i); err == nil && f.Code == graph.CodeUnreachable {
				dead[i] = true
			}
		}
		f := g.Start([]string{"a", "b", "c"}, "a", graph.Vars{})
		for _, e := range rapid.SliceOfN(genEnvelope(), 0, 20).Draw(t, "envelopes") {
			var route graph.Route
			if f, route = g.Advance(f, e); route.By == graph.ByRule && dead[route.Rule] {
				t.Fatalf("rule %d decided, though the check called it unreachable", route.Rule)
			}
		}
	})
}

// TestLawVarsAreAMap compares variables with a plain map.
func TestLawVarsAreAMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "é"})
		model := map[string]string{}
		var v graph.Vars
		for range rapid.IntRange(0, 8).Draw(t, "updates") {
			var u graph.Update
			for _, k := range rapid.SliceOfN(key, 0, 4).Draw(t, "delete") {
				u.Delete = append(u.Delete, k)
				delete(model, k)
			}
			for _, k := range rapid.SliceOfN(key, 0, 4).Draw(t, "set") {
				value := genValue().Draw(t, "value")
				u.Set = append(u.Set, graph.Var{Key: k, Value: value})
				model[k] = value
			}
			v = v.With(u)
			size := 0
			for k, want := range model {
				size += len(k) + len(want)
				if got, ok := v.Get(k); !ok || got != want {
					t.Fatalf("%q: got %q, %v; want %q", k, got, ok, want)
				}
			}
			if v.Len() != len(model) || v.Size() != size {
				t.Fatalf("%d variables of %d bytes, want %d of %d", v.Len(), v.Size(), len(model), size)
			}
		}
	})
}

// TestLawDrawingIsTotal draws random graphs with random paths.
func TestLawDrawingIsTotal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := build(t, genDefinition().Draw(t, "definition"))
		f := g.Start([]string{"a", "b", "c"}, "a", graph.Vars{})
		var hops []graph.Hop
		for i, e := range rapid.SliceOfN(genEnvelope(), 0, 5).Draw(t, "envelopes") {
			next, route := g.Advance(f, e)
			if next.Turns > f.Turns {
				hops = append(hops, graph.Hop{Turn: i + 1, From: e.Sender, To: next.Expected, Closed: next.Closing, By: route.By, Rule: route.Rule})
			}
			f = next
		}
		for _, text := range []string{graph.Mermaid(g, graph.Drawing{Path: hops}), graph.DOT(g, graph.Drawing{Path: hops, Creator: "c"})} {
			if strings.Count(text, `["`)+strings.Count(text, "label=") == 0 {
				t.Fatalf("nothing drawn:\n%s", text)
			}
		}
	})
}
