package graph_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/graph"
)

func TestParseFile(t *testing.T) {
	t.Parallel()
	f, err := graph.ParseFile([]byte(deskGraph), nil)
	equal(t, err, nil)
	equal(t, f.Participants, graph.Participants{{"id-1", "ann"}, {"id-2", "bob"}, {"id-3", "cyd"}})
	equal(t, f.Participants.IDs(), []string{"id-1", "id-2", "id-3"})
	equal(t, f.Participants.Names(), map[string]string{"id-1": "ann", "id-2": "bob", "id-3": "cyd"})
	equal(t, object(t, f.Graph), `{"initial_speaker":"id-1","transitions":[{"when":{"name":"tool_called","args":{"tool_name":"page"}},"then":{"name":"agent","args":{"agent_id":"id-3"}},"priority":0},{"when":{"name":"from_speaker","args":{"agent_id":"id-1"}},"then":{"name":"agent","args":{"agent_id":"id-2"}},"priority":0}],"default_target":{"name":"revert_to_initiator","args":{}},"max_turns":9}`)

	f, err = graph.ParseFile([]byte(everything), nil)
	equal(t, err, nil)
	equal(t, object(t, f.Graph), everything)
	equal(t, f.Participants, graph.Participants(nil))
	f, err = graph.ParseFile([]byte("note: mine\ninitial_speaker: a\n"), nil)
	equal(t, err, nil)
	equal(t, f.Graph.Source(), `{"note":"mine","initial_speaker":"a"}`)

	f, err = graph.ParseFile([]byte(`{"initial_speaker":"a","participants":["a","b"],"x":"\ud83d\ude00"}`), graph.NewRegistry(graph.Limits{}))
	equal(t, err, nil)
	equal(t, f.Participants, graph.Participants{{"a", "a"}, {"b", "b"}})
}

func TestYAMLValues(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ yaml, want string }{
		{"1", "1"},
		{"-17", "-17"},
		{"+5", "5"},
		{"1_000", "1000"},
		{"0x1F", "31"},
		{"0o17", "15"},
		{"9007199254740993", "9007199254740993"},
		{"123456789012345678901234567890", "123456789012345678901234567890"},
		{"1.50", "1.50"},
		{"1e400", "1e400"},
		{"'1e400'", `"1e400"`},
		{"!!str 1e400", `"1e400"`},
		{"1e4000x", `"1e4000x"`},
		{".5", "0.5"},
		{"-.5", "-0.5"},
		{"+.5", "0.5"},
		{"5.", "5.0"},
		{"5.e3", "5.0e3"},
		{"5.E3", "5.0E3"},
		{"1_0.5", "10.5"},
		{"0.1000000000000000000001", "0.1000000000000000000001"},
		{"true", "true"},
		{"True", "true"},
		{"FALSE", "false"},
		{"yes", `"yes"`},
		{"null", "null"},
		{"~", "null"},
		{"", "null"},
		{"text", `"text"`},
		{`"1"`, `"1"`},
		{"'a\"b'", `"a\"b"`},
		{"2001-12-14", `"2001-12-14"`},
		{"[1, {a: b}, []]", `[1,{"a":"b"},[]]`},
		{"{}", `{}`},
		{"{1: x, true: y}", `{"1":"x","true":"y"}`},
		{"[&x {n: 1.0}, *x]", `[{"n":1.0},{"n":1.0}]`},
		{"\n  - a\n  - b: 1\n    c: 2\n", `["a",{"b":1,"c":2}]`},
	} {
		f, err := graph.ParseFile([]byte("initial_speaker: a\ntransitions:\n- then:\n  when:\n    name: context_equals\n    args:\n      key: k\n      value: "+strings.ReplaceAll(tc.yaml, "\n", "\n      ")+"\n"), nil)
		if err != nil {
			t.Errorf("%q: %v", tc.yaml, err)
			continue
		}
		equal(t, f.Graph.Transition(0).When, is("k", tc.want))
	}
}

func TestFilesAreRefused(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for _, name := range []string{"b", "c", "d", "e", "f", "g", "h"} {
		before := string(name[0] - 1)
		bomb += name + ": &" + name + " [" + strings.TrimSuffix(strings.Repeat("*"+before+",", 10), ",") + "]\n"
	}
	for _, tc := range []struct{ name, in, want string }{
		{"empty", " \n", "graph: the file is empty"},
		{"only a comment", "# nothing\n", "graph: the file is empty"},
		{"no graph", "participants: [a]", "graph: lacks 'initial_speaker'"},
		{"a list", "- a", "graph: a graph must be a JSON object, not an array"},
		{"not a number", "initial_speaker: a\nx: .nan", "graph: line 2: '.nan' is not a number that JSON knows"},
		{"infinite", "initial_speaker: a\nx: -.inf", "graph: line 2: '-.inf' is not a number that JSON knows"},
		{"key no text", "initial_speaker: a\n[1]: b", "graph: line 2: a key must be plain text"},
		{"merge", "x: &x {a: 1}\ny:\n  <<: *x", "graph: line 3: a key must be plain text"},
		{"same key twice", "initial_speaker: a\n1: a\n'1': b", "graph: line 3: the key '1' is given twice"},
		{"bomb", bomb, "graph: line 1: the document is too deep or too large"},
		{"too deep", "x: " + strings.Repeat("[", 101) + strings.Repeat("]", 101), "graph: line 1: the document is too deep or too large"},
		{"not too deep", "x: " + strings.Repeat("[", 100) + strings.Repeat("]", 100), "graph: lacks 'initial_speaker'"},
		{"not UTF-8", "initial_speaker: \xff", "graph: neither JSON nor YAML: yaml: invalid leading UTF-8 octet"},
		{"participants", "initial_speaker: a\nparticipants: a", "graph: /participants must be an array"},
		{"a name for two", "initial_speaker: a\nparticipants: [a: x, b: z, a: y]", "graph: participants: the name 'a' is given to 'x' and to 'y'; give each a name of its own"},
		{"not too large", strings.Repeat(" ", 4<<20), "graph: the file is empty"},
		{"too large", strings.Repeat(" ", 4<<20+1), "graph: a file of 4194305 bytes; at most 4194304"},
		{"too large as a graph only", "[" + strings.Repeat("x", 4<<20-4) + ",b]", "graph: 4194308 bytes; at most 1048576"},
		{"duplicate", "initial_speaker: a\ninitial_speaker: b", "graph: line 2: the key 'initial_speaker' is given twice"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := graph.ParseFile([]byte(tc.in), nil)
			if err == nil {
				t.Fatal("accepted")
			}
			equal(t, err.Error(), tc.want)
		})
	}
}
