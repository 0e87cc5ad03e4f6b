package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/graph"
)

// longExponent returns a valid JSON number whose exponent has that many digits.
func longExponent(digits int) string { return "1e" + strings.Repeat("9", digits) }

func TestALongNumberIsNotCompared(t *testing.T) {
	t.Parallel()
	long := longExponent(900_000)
	for name, when := range map[string]graph.Condition{
		"threshold":        graph.ContextThreshold{Key: "n", Threshold: "1.5"},
		"equals":           graph.ContextEquals{Key: "n", Value: raw("1.5")},
		"in":               graph.ContextIn{Key: "n", Values: []jsontext.Value{raw("1.5")}},
		"nested in a list": graph.ContextEquals{Key: "list", Value: raw("[1.5]")},
		"any_of":           graph.AnyOf{Conditions: graph.Conditions{graph.ContextThreshold{Key: "n", Threshold: "1.5"}, graph.Always{}}},
		"custom negation":  not{graph.ContextThreshold{Key: "n", Threshold: "1.5"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := build(t, rules("a", rule(when, to("b")), rule(graph.Always{}, to("c"))))
			f := g.Start([]string{"a", "b", "c"}, "a", vars(t, `{"n":`+long+`,"list":[`+long+`]}`))
			turn := graph.NewTurn(text("a"))
			if d, index := g.Evaluate(&f, turn); index != 1 || d.Speaker != "c" {
				t.Fatalf("rule %d selects %s; a rule that needs a long number must not match", index, d.Speaker)
			}
			if turn.Steps() > 2*len(long) {
				t.Fatalf("%d steps to give up on a number of %d characters", turn.Steps(), len(long))
			}
		})
	}
}

// not is a condition of an application that negates another.
type not struct{ of graph.Condition }

func (not) Name() string { return "not" }

func (n not) Evaluate(f *graph.Facts, t *graph.Turn) bool { return !n.of.Evaluate(f, t) }

// A variable is parsed once in a turn, however many values it is compared with.
func TestManyValuesOnALargeVariable(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	for name, shape := range map[string]func(i int) string{
		"objects": func(i int) string { return fmt.Sprintf(`{"k":%d}`, i) },
		"strings": func(i int) string { return fmt.Sprintf(`"\u0061%d"`, i) },
		"plain":   func(i int) string { return fmt.Sprintf(`"a%d"`, i) },
		"arrays":  func(i int) string { return fmt.Sprintf(`[%d.5]`, i) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := graph.ContextIn{Key: "v"}
			written := 0
			for i := range 400 {
				in.Values = append(in.Values, raw(shape(i)))
				written += len(shape(i))
			}
			large := `"` + strings.Repeat(`\u0062`, size/6) + `"`
			switch shape(0)[0] {
			case '{':
				large = `{"k":` + large + `}`
			case '[':
				large = `[` + strings.Repeat("1.5,", size/4) + `1.5]`
			}
			g := build(t, rules("a", rule(in, to("b")), rule(graph.Always{}, to("c"))))
			f := g.Start([]string{"a", "b", "c"}, "a", vars(t, `{"v":`+large+`}`))
			turn := graph.NewTurn(text("a"))
			if d, index := g.Evaluate(&f, turn); index != 1 || d.Speaker != "c" {
				t.Fatalf("rule %d selects %s", index, d.Speaker)
			}
			if most := len(large) + written; turn.Steps() > most {
				t.Fatalf("%d steps; parsing each text once takes %d", turn.Steps(), most)
			}
		})
	}
}

func TestStepsAreBounded(t *testing.T) {
	t.Parallel()
	// Each rule reads another variable, so that none is parsed already.
	var list []graph.Transition
	var b strings.Builder
	value := `["` + strings.Repeat("x", 1<<20) + `"]`
	for i := range 20 {
		fmt.Fprintf(&b, `,"v%d":%s`, i, value)
		list = append(list, rule(is(fmt.Sprintf("v%d", i), `["y"]`), to("b")))
	}
	list = append(list, rule(is("v19", value), to("c")), rule(graph.Always{}, to("a")))
	g := build(t, rules("a", list...))
	f := g.Start([]string{"a", "b", "c"}, "a", vars(t, "{"+b.String()[1:]+"}"))
	turn := graph.NewTurn(text("a"))
	if d, index := g.Evaluate(&f, turn); index != 20 || d.Speaker != "c" {
		t.Fatalf("rule %d selects %s; equal texts need no steps", index, d.Speaker)
	}
	if turn.Steps() > graph.MaxSteps {
		t.Fatalf("%d steps, more than %d", turn.Steps(), graph.MaxSteps)
	}
	again := graph.NewTurn(text("a"))
	g.Evaluate(&f, again)
	equal(t, again.Steps(), turn.Steps())
}

func TestCheckBounds(t *testing.T) {
	t.Parallel()
	values := func(n int) graph.Condition {
		in := graph.ContextIn{Key: "v"}
		for i := range n {
			in.Values = append(in.Values, raw(fmt.Sprint(i)))
		}
		return in
	}
	nested := func(n int) graph.Condition {
		var all graph.AllOf
		for range n - 1 {
			all.Conditions = append(all.Conditions, graph.Always{})
		}
		return all
	}
	for _, tt := range []struct {
		name, fragment string
		when           graph.Condition
	}{
		{"a number at the bound", "", graph.ContextThreshold{Key: "n", Threshold: graph.Number(longExponent(graph.MaxNumber - 2))}},
		{"a number above it", "at most 1024", graph.ContextThreshold{Key: "n", Threshold: graph.Number(longExponent(graph.MaxNumber - 1))}},
		{"a number in a list", "at most 1024", is("n", `["1",{"a\"1":-`+longExponent(900_000)+`}]`)},
		{"digits in a string", "", is("n", `"\"`+longExponent(2000)+`"`)},
		{"values at the bound", "", values(graph.MaxValues)},
		{"values above it", "transitions[0].when: context_in lists 1025 values; at most 1024", values(graph.MaxValues + 1)},
		{"conditions at the bound", "", nested(graph.MaxConditions)},
		{"conditions above it", "at most 16384", nested(graph.MaxConditions + 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := build(t, rules("a", rule(tt.when, to("b"))))
			err := g.CheckBounds(graph.Bounds{})
			if tt.fragment == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.fragment) {
				t.Fatalf("got %v, want %q", err, tt.fragment)
			}
			if found := graph.Check(g, nil); found[0].Code != graph.CodeBounds || found[0].Severity != graph.SeverityError {
				t.Fatalf("the check reports %v", found[0])
			}
		})
	}
}

func TestCheckReportsABoundedList(t *testing.T) {
	t.Parallel()
	var list []graph.Transition
	for i := range 4000 {
		list = append(list, rule(is("k"+strings.Repeat("k", 2000), fmt.Sprint(i%2)), to(fmt.Sprint("stranger", i))))
	}
	found := graph.Check(build(t, rules("a", list...)), []string{"a", "b"})
	if len(found) != graph.MaxFindings+1 || found[graph.MaxFindings].Code != graph.CodeMore {
		t.Fatalf("%d findings, the last is %v", len(found), found[len(found)-1])
	}
	size := 0
	for _, f := range found {
		size += len(f.Message)
	}
	if size > 400*len(found)*10 {
		t.Fatalf("%d bytes of findings", size)
	}
}
