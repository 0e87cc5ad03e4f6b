package graph_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/graph"
)

func TestConditions(t *testing.T) {
	t.Parallel()
	all := func(cs ...graph.Condition) graph.Condition { return graph.AllOf{Conditions: cs} }
	some := func(cs ...graph.Condition) graph.Condition { return graph.AnyOf{Conditions: cs} }
	custom := &envelope.Envelope{Sender: "a", Type: "myapp.note", Data: []byte(`{"routing":{"tool":"page"}}`)}
	for _, tc := range []struct {
		name string
		when graph.Condition
		env  *envelope.Envelope
		vars string
		want bool
	}{
		{"always", graph.Always{}, text("a"), `{}`, true},
		{"from speaker", from("a"), text("a"), `{}`, true},
		{"from another", from("a"), text("b"), `{}`, false},
		{"from a prefix", from("a"), text("aa"), `{}`, false},

		{"tool", graph.ToolCalled{ToolName: "page"}, static("a", "page"), `{}`, true},
		{"another tool", graph.ToolCalled{ToolName: "page"}, static("a", "pager"), `{}`, false},
		{"tool of a text packet", graph.ToolCalled{ToolName: "page"}, packet("a", `{"routing":{"kind":"text","tool":"page"}}`), `{}`, true},
		{"tool without kind", graph.ToolCalled{ToolName: "page"}, packet("a", `{"routing":{"tool":"page"}}`), `{}`, true},
		{"tool in a plain text", graph.ToolCalled{ToolName: "page"}, &envelope.Envelope{Sender: "a", Type: envelope.TypeText, Data: []byte(`{"text":"","routing":{"tool":"page"}}`)}, `{}`, false},
		{"tool in a custom event", graph.ToolCalled{ToolName: "page"}, custom, `{}`, false},
		{"no tool at all", graph.ToolCalled{ToolName: ""}, packet("a", `{"routing":{"kind":"text"}}`), `{}`, false},
		{"a tool without a name", graph.ToolCalled{ToolName: ""}, packet("a", `{"routing":{"kind":"text","tool":""}}`), `{}`, true},
		{"null in place of a tool", graph.ToolCalled{ToolName: ""}, packet("a", `{"routing":{"kind":"text","tool":null}}`), `{}`, false},

		{"threshold met", graph.ContextThreshold{Key: "n", Threshold: "3"}, text("a"), `{"n":3}`, true},
		{"threshold above", graph.ContextThreshold{Key: "n", Threshold: "3"}, text("a"), `{"n":3.0000000000000000000001}`, true},
		{"threshold below", graph.ContextThreshold{Key: "n", Threshold: "3"}, text("a"), `{"n":2.9999999999999999999999}`, false},
		{"threshold absent counts 0", graph.ContextThreshold{Key: "n", Threshold: "0"}, text("a"), `{}`, true},
		{"threshold absent below 1", graph.ContextThreshold{Key: "n", Threshold: "1"}, text("a"), `{}`, false},
		{"threshold unset is 0", graph.ContextThreshold{Key: "n"}, text("a"), `{"n":-1}`, false},
		{"threshold null", graph.ContextThreshold{Key: "n", Threshold: "0"}, text("a"), `{"n":null}`, false},
		{"threshold text", graph.ContextThreshold{Key: "n", Threshold: "0"}, text("a"), `{"n":"5"}`, false},
		{"threshold true", graph.ContextThreshold{Key: "n", Threshold: "1"}, text("a"), `{"n":true}`, false},
		{"threshold negative", graph.ContextThreshold{Key: "n", Threshold: "-2.5"}, text("a"), `{"n":-2.5e0}`, true},

		{"in", graph.ContextIn{Key: "k", Values: []jsontext.Value{raw(`"a"`), raw(`2`)}}, text("a"), `{"k":2.0}`, true},
		{"not in", graph.ContextIn{Key: "k", Values: []jsontext.Value{raw(`"a"`), raw(`2`)}}, text("a"), `{"k":"2"}`, false},
		{"absent in null", graph.ContextIn{Key: "k", Values: []jsontext.Value{raw(`null`)}}, text("a"), `{}`, true},
		{"absent in others", graph.ContextIn{Key: "k", Values: []jsontext.Value{raw(`0`)}}, text("a"), `{}`, false},
		{"in nothing", graph.ContextIn{Key: "k"}, text("a"), `{}`, false},

		{"all of none", all(), text("a"), `{}`, true},
		{"all of both", all(from("a"), is("k", "1")), text("a"), `{"k":1}`, true},
		{"all of first only", all(from("a"), is("k", "1")), text("a"), `{}`, false},
		{"all of second only", all(from("b"), is("k", "1")), text("a"), `{"k":1}`, false},
		{"any of none", some(), text("a"), `{}`, false},
		{"any of first", some(from("a"), is("k", "1")), text("a"), `{}`, true},
		{"any of second", some(from("b"), is("k", "1")), text("a"), `{"k":1}`, true},
		{"any of neither", some(from("b"), is("k", "1")), text("a"), `{}`, false},
		{"nested", all(some(from("b"), from("a")), all(is("k", "1"))), text("a"), `{"k":1}`, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			equal(t, evaluate(tc.when, graph.Facts{Vars: vars(t, tc.vars)}, tc.env), tc.want)
		})
	}
}

// TestContextEquals is the equality of context values: by value and deep.
func TestContextEquals(t *testing.T) {
	t.Parallel()
	long := "1" + string(make0(400))
	for _, tc := range []struct {
		have, value string
		want        bool
	}{
		{`1`, `1`, true},
		{`1`, `1.0`, true},
		{`1`, `1e0`, true},
		{`1`, `10E-1`, true},
		{`1`, `0.1e+1`, true},
		{`1`, `2`, false},
		{`-1`, `1`, false},
		{`1`, `-1.0`, false},
		{`0`, `-0`, true},
		{`0`, `-0.0e5`, true},
		{`0.0`, `0e9`, true},
		{`0`, `0.1`, false},
		{`9007199254740993`, `9007199254740992`, false},
		{`9007199254740993`, `9007199254740993.0`, true},
		{`0.1`, `0.1000000000000000000001`, false},
		{`1e400`, `1e401`, false},
		{`1e400`, long, true},
		{`-1e400`, `-` + long, true},
		{`1e401`, long, false},
		{`1e99999999999999999999`, `1e99999999999999999998`, false},
		{`1e99999999999999999999`, `10e99999999999999999998`, true},
		{`1e-99999999999999999999`, `0`, false},
		{`100`, `1e2`, true},
		{`0.001`, `1e-3`, true},
		{`12.5`, `125e-1`, true},
		{`12.5`, `12.50`, true},
		{`1005`, `1.005e3`, true},
		{`1005`, `1.05e3`, false},
		{`0.05`, `0.5`, false},
		{`99999999999999999999`, `99999999999999999998`, false},

		{`true`, `1`, false},
		{`false`, `0`, false},
		{`1`, `true`, false},
		{`true`, `true`, true},
		{`true`, `false`, false},
		{`null`, `null`, true},
		{`null`, `0`, false},
		{`null`, `false`, false},
		{`null`, `""`, false},
		{`"a"`, `"a"`, true},
		{`"a"`, `"b"`, false},
		{`"a"`, `"\u0061"`, true},
		{`"\u0062"`, `"a"`, false},
		{`"1"`, `1`, false},
		{`"é"`, `"\u00e9"`, true},
		{`""`, `null`, false},

		{`[]`, `[]`, true},
		{`[1,2]`, `[1, 2.0]`, true},
		{`[1,2]`, `[2,1]`, false},
		{`[1]`, `[1,1]`, false},
		{`[]`, `{}`, false},
		{`[true]`, `[1]`, false},
		{`[null]`, `[]`, false},
		{`["a"]`, `["b"]`, false},
		{`[[1],[2]]`, `[[1],[3]]`, false},
		{`{"a":1,"b":[2]}`, `{"b":[2.0],"a":1}`, true},
		{`{"a":1}`, `{"a":2}`, false},
		{`{"a":1}`, `{"b":1}`, false},
		{`{"a":1}`, `{"a":1,"b":1}`, false},
		{`{"a":null}`, `{}`, false},
		{`{"a":{"b":"x"}}`, `{"a":{"b":"y"}}`, false},
		{`{"a":"x"}`, `{"\u0061":"\u0078"}`, true},
		{`{"a":[]}`, `{"a":{}}`, false},
	} {
		t.Run(tc.have+" against "+tc.value, func(t *testing.T) {
			t.Parallel()
			f := graph.Facts{Vars: vars(t, `{"k":`+tc.have+`}`)}
			equal(t, evaluate(is("k", tc.value), f, text("a")), tc.want)
			// Equality has no direction.
			f = graph.Facts{Vars: vars(t, `{"k":`+tc.value+`}`)}
			equal(t, evaluate(is("k", tc.have), f, text("a")), tc.want)
		})
	}
}

func make0(n int) []byte {
	zeros := make([]byte, n)
	for i := range zeros {
		zeros[i] = '0'
	}
	return zeros
}

func TestThresholdComparesExactly(t *testing.T) {
	t.Parallel()
	ascending := []string{
		`-1e99999999999999999999`, `-100`, `-99.9`, `-1`, `-0.5`, `-1e-400`, `0`, `1e-99999999999999999999`, `1e-400`,
		`0.049`, `0.05`, `0.5`, `1`, `1.0000000000000000001`, `9.99`, `10`, `9007199254740992`, `9007199254740993`,
		`99999999999999999999`, `1e400`, `2e400`, `1e401`, `1e99999999999999999998`, `1e99999999999999999999`,
	}
	for i, have := range ascending {
		for j, threshold := range ascending {
			f := graph.Facts{Vars: vars(t, `{"n":`+have+`}`)}
			got := evaluate(graph.ContextThreshold{Key: "n", Threshold: graph.Number(threshold)}, f, text("a"))
			if got != (i >= j) {
				t.Errorf("%s >= %s: got %v", have, threshold, got)
			}
		}
	}
}

// counted records how often it was evaluated.
type counted struct {
	answer bool
	asked  *int
}

func (counted) Name() string { return "counted" }

func (c counted) Evaluate(*graph.Facts, *graph.Turn) bool { *c.asked++; return c.answer }

func TestComposersStopEarly(t *testing.T) {
	t.Parallel()
	var yes, no int
	list := graph.Conditions{counted{false, &no}, counted{true, &yes}}
	equal(t, evaluate(graph.AllOf{Conditions: list}, graph.Facts{}, text("a")), false)
	equal(t, []int{no, yes}, []int{1, 0})
	list = graph.Conditions{counted{true, &yes}, counted{false, &no}}
	equal(t, evaluate(graph.AnyOf{Conditions: list}, graph.Facts{}, text("a")), true)
	equal(t, []int{no, yes}, []int{1, 1})
}
