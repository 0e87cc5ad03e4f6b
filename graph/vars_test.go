package graph_test

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/parley-hub/parley/graph"
)

func TestVars(t *testing.T) {
	t.Parallel()
	v := vars(t, ` { "b" : [1, {"x": 2.50}] , "a":"\u00e9", "c":null } `)
	text, err := v.MarshalJSON()
	equal(t, err, nil)
	equal(t, string(text), `{"a":"\u00e9","b":[1,{"x":2.50}],"c":null}`)
	equal(t, maps.Collect(v.All()), map[string]string{"a": `"\u00e9"`, "b": `[1,{"x":2.50}]`, "c": "null"})
	equal(t, v.Len(), 3)
	equal(t, v.Size(), 3+len(`"\u00e9"`)+len(`[1,{"x":2.50}]`)+4)
	got, ok := v.Get("b")
	equal(t, got, `[1,{"x":2.50}]`)
	equal(t, ok, true)
	_, ok = v.Get("bb")
	equal(t, ok, false)
	for key := range v.All() {
		equal(t, key, "a")
		break
	}
	for _, bad := range []string{``, `[]`, `"{}"`, `null`, `{`, `1`} {
		_, err := graph.ParseVars([]byte(bad))
		if err == nil || !strings.HasPrefix(err.Error(), "graph: context_vars must be a JSON object, not ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestVarsUpdate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, before, update, want string }{
		{"merge", `{"a":1,"c":3}`, `{"set":{"b":2,"c":4,"d":5}}`, `{"a":1,"b":2,"c":4,"d":5}`},
		{"delete", `{"a":1,"b":2,"c":3}`, `{"delete":["c","a"]}`, `{"b":2}`},
		{"delete what is not there", `{"b":2}`, `{"delete":["a","c"]}`, `{"b":2}`},
		{"delete then set", `{"a":1}`, `{"set":{"a":2},"delete":["a"]}`, `{"a":2}`},
		{"delete then set, delete written first", `{"a":1}`, `{"delete":["a"],"set":{"a":2}}`, `{"a":2}`},
		{"nothing", `{"a":1}`, `{}`, `{"a":1}`},
		{"nulls", `{"a":1}`, `{"set":null,"delete":null}`, `{"a":1}`},
		{"set to null stays", `{"a":1}`, `{"set":{"a":null}}`, `{"a":null}`},
		{"twice the same delete", `{"a":1,"b":1}`, `{"delete":["a","a"]}`, `{"b":1}`},
		{"all gone", `{"a":1}`, `{"delete":["a"]}`, `{}`},
		{"into nothing", `{}`, `{"set":{"z":{"y": [1, 2]}}}`, `{"z":{"y":[1,2]}}`},
		{"the last of two equal keys", `{}`, `{"set":{"a":1,"a":2}}`, `{"a":2}`},
		{"the last of two sets", `{}`, `{"set":{"a":1},"set":{"b":2}}`, `{"b":2}`},
		{"the last of two deletes", `{"a":1,"b":1}`, `{"delete":["a"],"delete":["b"]}`, `{"a":1}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			before := vars(t, tc.before)
			update, err := graph.ReadUpdate([]byte(tc.update))
			equal(t, err, nil)
			got := before.With(update)
			want := vars(t, tc.want)
			equal(t, got, want)
			equal(t, got.Size(), want.Size())
			equal(t, before, vars(t, tc.before))
		})
	}
}

func TestMalformedUpdates(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want, err string }{
		{`{"set":[1]}`, `{"a":1}`, "graph: set must be an object of keys and values, not an array"},
		{`{"set":"x","delete":["a"]}`, `{}`, "graph: set must be an object of keys and values, not a string"},
		{`{"delete":"a","set":{"b":1}}`, `{"a":1,"b":1}`, "graph: delete must be an array of keys, not a string"},
		{`{"delete":{"a":1}}`, `{"a":1}`, "graph: delete must be an array of keys, not an object"},
		{`{"delete":[1,"a",null]}`, `{}`, "graph: delete must list keys as strings, not a number"},
		{`{"delete":[null,1]}`, `{"a":1}`, "graph: delete must list keys as strings, not null"},
		{`{"set":1,"delete":2}`, `{"a":1}`, "graph: set must be an object of keys and values, not a number"},
		{`[]`, `{"a":1}`, "graph: wanted an object, got an array"},
		{`"x"`, `{"a":1}`, "graph: wanted an object, got a string"},
		{`null`, `{"a":1}`, ""},
	} {
		update, err := graph.ReadUpdate([]byte(tc.in))
		text := ""
		if err != nil {
			text = err.Error()
		}
		equal(t, text, tc.err)
		equal(t, vars(t, `{"a":1}`).With(update), vars(t, tc.want))
	}
	for _, in := range []string{``, `{`, `{"set":`, `{"set":{"a":`, `{"delete":[`, `{]`, `{"delete":["a"`, `#`} {
		if _, err := graph.ReadUpdate([]byte(in)); err == nil && in != `{]` {
			t.Errorf("%q: no error", in)
		}
	}
}

func TestParsePacket(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{}`: "",
		`{"routing":null,"context_updates":null,"body":7}`:                         "",
		`{"routing":{"kind":null,"tool":"t","reason":"r","target":"x","more":[]}}`: "",
		`{"context_updates":{"set":{"a":1},"delete":["b"]}}`:                       "",
		`null`:                      "packet: graph: wanted an object, got null",
		`[]`:                        "packet: graph: wanted an object, got an array",
		`{"routing":"x"}`:           "routing: graph: wanted an object, got a string",
		`{"routing":{"kind":7}}`:    "routing: graph: kind must be a string, not a number",
		`{"routing":{"tool":true}}`: "routing: graph: tool must be a string, not a boolean",
		`{"routing":{"reason":[]}}`: "routing: graph: reason must be a string, not an array",
		`{"routing":{"kind":"text","target":{}}}`:                  "routing: graph: target must be a string, not an object",
		`{"context_updates":{"set":[]}}`:                           "context_updates: graph: set must be an object of keys and values, not an array",
		`{"routing":{"tool":7,"target":true},"context_updates":7}`: "routing: graph: tool must be a string, not a number", // the first
	} {
		got, err := graph.ParsePacket([]byte(in))
		if told := fmt.Sprint(err); told != cmp.Or(want, "<nil>") {
			t.Errorf("%s is refused with %s, want %s", in, told, want)
		}
		equal(t, got, graph.ReadPacket([]byte(in)))
	}
}

func TestReadPacket(t *testing.T) {
	t.Parallel()
	equal(t, graph.ReadPacket([]byte(`{"routing":{"kind":"handoff","tool":"pick_reviewer","reason":"touches \"billing\"","target":"agt-mira","x":1},"context_updates":{"set":{"k":[1]},"delete":["d"]},"body":"Draft attached."}`)), graph.Packet{
		Kind: "handoff", Tool: "pick_reviewer", HasTool: true, Reason: `touches "billing"`, Target: "agt-mira",
		Updates: graph.Update{Set: []graph.Var{{Key: "k", Value: "[1]"}}, Delete: []string{"d"}},
	})
	equal(t, graph.ReadPacket([]byte(`{"routing":{"kind":"finish","tool":"t","reason":"r","target":"x"},"routing":{"kind":"text"}}`)), graph.Packet{Kind: "text"})
	equal(t, graph.ReadPacket([]byte(`{"\u0072outing":{"\u006bind":"\u0074ext"}}`)), graph.Packet{Kind: "text"})
	for _, in := range []string{``, `null`, `[]`, `{"routing":[]}`, `{"routing":"text"}`, `{"routing":{"kind":null,"tool":1,"reason":true,"target":[]}}`, `{"context_updates":"x"}`, `{"routing"`} {
		equal(t, graph.ReadPacket([]byte(in)), graph.Packet{})
	}
	// A plain text is no packet, whatever it carries.
	e := packet("a", `{"routing":{"kind":"finish"}}`)
	equal(t, graph.NewTurn(e).Packet, graph.Packet{Kind: "finish"})
	e.Type = "ag2.msg.text"
	equal(t, graph.NewTurn(e).Packet, graph.Packet{})
}
