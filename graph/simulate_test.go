package graph_test

import (
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/graph"
)

func script(t *testing.T, text string) *graph.Script {
	t.Helper()
	s, err := graph.ParseScript([]byte(text))
	equal(t, err, nil)
	return s
}

const deskGraph = `
initial_speaker: ann
transitions:
  - when: {name: tool_called, args: {tool_name: page}}
    then: {name: agent, args: {agent_id: cyd}}
  - when: {name: from_speaker, args: {agent_id: ann}}
    then: {name: agent, args: {agent_id: bob}}
default_target: {name: revert_to_initiator}
max_turns: 9
participants: [ann: id-1, bob: id-2, cyd: id-3]
`

const deskScript = `
participants: [ann: id-1, bob: id-2, cyd: id-3]
creator: cyd
context_vars: {todo: [1.50, two]}
turns:
  - text: hello
  - speaker: ann
    text: me again
  - speaker: id-2
    event: myapp.note
    data: {n: 1}
  - speaker: nobody
    set: {x: 1}
  - speaker: ann
    set: {x: 1}
    delete: [todo]
  - tool: page
    reason: urgent
    body: look
    set: {y: 2}
  - text: fine
    set: {z: 3}
  - handoff: ann
    tool: pick
  - finish: enough
  - text: too late
`

func TestSimulate(t *testing.T) {
	t.Parallel()
	f, err := graph.ParseFile([]byte(deskGraph), nil)
	equal(t, err, nil)
	trace, err := graph.Simulate(f.Graph, f.Participants.IDs(), script(t, deskScript))
	equal(t, err, nil)
	const text, pack, set = "ag2.msg.text", "ag2.packet", "ag2.context.set"
	equal(t, trace.Steps, []graph.Step{
		{Line: 0, Turn: 1, Speaker: "id-1", Type: text, By: graph.ByRule, Rule: 1, Why: "from_speaker(id-1) → agent(id-2)", Next: "id-2"},
		{Line: 1, Speaker: "id-1", Type: text, Rule: -1, Next: "id-2", Refused: "workflow expects 'id-2' to speak"},
		{Line: 2, Speaker: "id-2", Type: "myapp.note", By: graph.ByNothing, Rule: -1, Next: "id-2"},
		{Line: 3, Speaker: "nobody", Type: set, Rule: -1, Next: "id-2", Refused: "workflow only accepts EV_CONTEXT_SET from participants"},
		{Line: 4, Speaker: "id-1", Type: set, By: graph.ByContext, Rule: -1, Next: "id-2"},
		{Line: 5, Turn: 2, Speaker: "id-2", Type: pack, Tool: "page", By: graph.ByRule, Rule: 0, Why: "tool_called(page) → agent(id-3)", Next: "id-3"},
		{Line: 6, Speaker: "id-3", Type: set, By: graph.ByContext, Rule: -1, Next: "id-3"},
		{Line: 6, Turn: 3, Speaker: "id-3", Type: text, By: graph.ByDefault, Rule: -1, Why: "default → revert_to_initiator", Next: "id-3"},
		{Line: 7, Turn: 4, Speaker: "id-3", Type: pack, Tool: "pick", By: graph.ByHandoff, Rule: -1, Why: "handoff → id-1", Next: "id-1"},
		{Line: 8, Turn: 5, Speaker: "id-1", Type: pack, By: graph.ByFinish, Rule: -1, Why: "finish", Closed: "enough"},
		{Line: 9, Speaker: "", Type: text, Rule: -1, Refused: "the channel is closed: enough"},
	})
	equal(t, trace.Creator, "id-3")
	equal(t, trace.Turns, 5)
	equal(t, trace.Closed, true)
	equal(t, trace.Reason, "enough")
	equal(t, trace.Expected, "")
	equal(t, trace.Context, vars(t, `{"x":1,"y":2,"z":3}`))
	equal(t, trace.Speakers(), []string{"id-1", "id-2", "id-3", "id-3", "id-1"})
	equal(t, trace.String(), strings.TrimPrefix(`
  1  id-1 ag2.msg.text; transitions[1]: from_speaker(id-1) → agent(id-2); id-2 is expected
  ·  id-1 ag2.msg.text refused: workflow expects 'id-2' to speak
  ·  id-2 myapp.note: no turn
  ·  nobody ag2.context.set refused: workflow only accepts EV_CONTEXT_SET from participants
  ·  id-1 ag2.context.set: context changed, no turn
  2  id-2 ag2.packet; transitions[0]: tool_called(page) → agent(id-3); id-3 is expected
  ·  id-3 ag2.context.set: context changed, no turn
  3  id-3 ag2.msg.text; default → revert_to_initiator; id-3 is expected
  4  id-3 ag2.packet; handoff → id-1; id-1 is expected
  5  id-1 ag2.packet; finish; closed: enough
  ·   ag2.msg.text refused: the channel is closed: enough
closed: enough, after 5 turns
`, "\n"))
	equal(t, trace.Path(), []graph.Hop{
		{Turn: 1, From: "id-1", To: "id-2", By: graph.ByRule, Rule: 1},
		{Turn: 2, From: "id-2", To: "id-3", By: graph.ByRule, Rule: 0, Tool: "page"},
		{Turn: 3, From: "id-3", To: "id-3", By: graph.ByDefault, Rule: -1},
		{Turn: 4, From: "id-3", To: "id-1", By: graph.ByHandoff, Rule: -1, Tool: "pick"},
		{Turn: 5, From: "id-1", Closed: "enough", By: graph.ByFinish, Rule: -1},
	})
}

func TestFileSimulates(t *testing.T) {
	t.Parallel()
	f, err := graph.ParseFile([]byte(deskGraph), nil)
	equal(t, err, nil)
	// The file's names serve a script that lists none.
	trace, err := f.Simulate(script(t, `turns: [{speaker: ann, text: x}, {handoff: cyd}, {body: y}]`))
	equal(t, err, nil)
	equal(t, path(trace), "id-1>id-2 id-2>id-3 id-3>id-1")
	// A script's own participants come first.
	trace, err = f.Simulate(script(t, `{participants: [bea: id-2, ann: id-1], turns: [{speaker: ann, text: x}, {speaker: bea, body: y}]}`))
	equal(t, err, nil)
	equal(t, path(trace), "id-1>id-2 id-2>id-2")
}

// TestNamesAreMappedOnce uses names that are other participants' ids.
func TestNamesAreMappedOnce(t *testing.T) {
	t.Parallel()
	const rule = "\ninitial_speaker: x\ntransitions: [{when: {name: from_speaker, args: {agent_id: x}}, then: {name: agent, args: {agent_id: y}}}]\n"
	const turns = "turns: [{text: hi}, {speaker: y, text: yo}]"
	for _, tc := range []struct{ file, script, want string }{
		{"participants: [x: y, y: z]", turns, "y>z z#after_work"},
		{"participants: [x: y, y: z]", "participants: [x: y, y: z]\n" + turns, "y>z z#after_work"},
		{"participants: [x: y, y: z]", "participants: [y: x, x: y]\n" + turns, "y>x x#after_work"},
		{"participants: [x: a, y: b]", "participants: [a, b, y: c]\n" + turns, "a>c c#after_work"},
		{"", "participants: [x: y, y: z]\n" + turns, "y>z z#after_work"},
	} {
		f, err := graph.ParseFile([]byte(tc.file+rule), nil)
		equal(t, err, nil)
		s := script(t, tc.script)
		trace, err := f.Simulate(s)
		equal(t, err, nil)
		equal(t, path(trace), tc.want)
		// What is played once is played the same again.
		played, err := f.For(s)
		equal(t, err, nil)
		trace, err = played.Simulate(s)
		equal(t, err, nil)
		equal(t, path(trace), tc.want)
	}
	// A file that was not parsed has only its graph.
	f := &graph.File{Graph: load(t, `{"initial_speaker":"x"}`)}
	trace, err := f.Simulate(script(t, "participants: [x: y, y: z]\n"+turns))
	equal(t, err, nil)
	equal(t, trace.Creator, "y")
	equal(t, trace.Speakers(), []string{"y"})
}

func TestTraceAsJSON(t *testing.T) {
	t.Parallel()
	g := load(t, `{"initial_speaker":"a","default_target":{"name":"agent","args":{"agent_id":"b"}}}`)
	trace, err := graph.Simulate(g, []string{"a", "b"}, script(t, `turns: [{tool: t, set: {n: 1.50}}]`))
	equal(t, err, nil)
	got, err := jsonv2.Marshal(trace)
	equal(t, err, nil)
	equal(t, string(got), `{"steps":[{"line":0,"turn":1,"speaker":"a","type":"ag2.packet","tool":"t","by":"default","rule":-1,"why":"default → agent(b)","next":"b"}],"turns":1,"expected":"b","closed":false,"context_vars":{"n":1.50}}`)
	equal(t, trace.String(), "  1  a ag2.packet; default → agent(b); b is expected\nopen after 1 turns: b is expected\n")
}

func TestAnyoneMaySpeak(t *testing.T) {
	t.Parallel()
	g := load(t, `{"initial_speaker":"a","default_target":{"name":"agent","args":{"agent_id":""}}}`)
	trace, err := graph.Simulate(g, []string{"a", "b"}, script(t, `turns: [{text: x}, {text: y}, {speaker: b, text: z}]`))
	equal(t, err, nil)
	equal(t, path(trace), "a> !anyone may speak; name a speaker b>")
	equal(t, strings.HasSuffix(trace.String(), "open after 2 turns: anyone may speak\n"), true)
}

func TestSimulateRefuses(t *testing.T) {
	t.Parallel()
	g := load(t, `{"initial_speaker":"a"}`)
	for _, tc := range []struct {
		participants []string
		script, want string
	}{
		{nil, `turns: []`, "graph: participants: a workflow needs at least 2 participants; list them in the graph file or the script"},
		{[]string{"a"}, `turns: []`, "graph: participants: a workflow needs at least 2 participants, not 1"},
		{[]string{"a", "a"}, `turns: []`, "graph: participants: participant 'a' is listed twice"},
		{nil, `{participants: [a: a, b: a], turns: []}`, "graph: participants: participant 'a' is listed twice"},
		{[]string{"x", "y"}, `turns: []`, "graph: initial_speaker: 'a' is not in participants: x, y"},
		{[]string{"a", "b"}, `{creator: z, turns: []}`, "graph: creator: 'z' is not in participants: a, b"},
		{[]string{"a", "b"}, `{context_vars: [1], turns: []}`, "graph: context_vars must be a JSON object, not an array"},
	} {
		_, err := graph.Simulate(g, tc.participants, script(t, tc.script))
		equal(t, err.Error(), tc.want)
	}
	_, err := graph.Simulate(g, nil, script(t, `{participants: [a, b], turns: []}`))
	equal(t, err, nil)
}

func TestScriptsAreRefused(t *testing.T) {
	t.Parallel()
	const several = "says several things; write one of text, event, or a packet with body, tool, handoff or finish"
	for _, tc := range []struct{ in, want string }{
		{``, "graph: the file is empty"},
		{`turns: [{speaker: a}]`, "graph: turns[0]: says nothing; write one of text, body, tool, handoff, finish, event, set or delete"},
		{`turns: [{text: a}, {text: a, body: b}]`, "graph: turns[1]: " + several},
		{`turns: [{text: a, event: b}]`, "graph: turns[0]: " + several},
		{`turns: [{tool: a, event: b}]`, "graph: turns[0]: " + several},
		{`turns: [{handoff: a, finish: b}]`, "graph: turns[0]: " + several},
		{`turns: [{text: a, data: {}}]`, "graph: turns[0]: data belongs to an event"},
		{`turns: [{body: a, reason: b}]`, "graph: turns[0]: reason belongs to a tool or a handoff; finish is itself the reason"},
		{`turns: [{finish: a, reason: b}]`, "graph: turns[0]: reason belongs to a tool or a handoff; finish is itself the reason"},
		{`turns: [{text: a, repeat: -1}]`, "graph: turns[0]: repeat must not be negative"},
		{`turns: [{set: [1]}]`, "graph: turns[0]: set must be keys and values, not an array"},
		{`turns: [{event: e, data: x}]`, "graph: turns[0]: data must be keys and values, not a string"},
		{`turns: [{text: a, repeat: 100000}, {text: b}]`, "graph: turns: more than 100000 turns"},
		{`turns: [{text: 5}]`, "graph: /turns/0/text must be a string"},
		{`turns: {}`, "graph: /turns must be an array"},
		{`turns: [{txt: 5}]`, "graph: /turns/0/txt is not a key that is known here"},
		{`turn: []`, "graph: /turn is not a key that is known here"},
		{`{participants: [5], turns: []}`, "graph: participants: write a participant as its id, or as name: id; not as a number"},
		{`{participants: [{a: b, c: d}], turns: []}`, "graph: participants: write a participant as its id, or as name: id"},
		{`{participants: [{a: 5}], turns: []}`, "graph: participants: write a participant as its id, or as name: id"},
		{`{participants: [{}], turns: []}`, "graph: participants: write a participant as its id, or as name: id"},
		{`{participants: [''], turns: []}`, "graph: participants: a participant without id or name"},
		{`{participants: ['': x], turns: []}`, "graph: participants: a participant without id or name"},
		{`{participants: [a: x, a: y], turns: []}`, "graph: participants: the name 'a' is given to 'x' and to 'y'; give each a name of its own"},
		{`turns: [{text: a}`, "graph: neither JSON nor YAML: yaml: line 1: did not find expected ',' or ']'"},
	} {
		_, err := graph.ParseScript([]byte(tc.in))
		if err == nil {
			t.Errorf("%s: accepted", tc.in)
			continue
		}
		equal(t, err.Error(), tc.want)
	}
	s := script(t, `turns: [{text: a, repeat: 99999}, {text: b}]`)
	equal(t, len(s.Turns), 2)
}

// TestScriptPackets shows the envelopes that lines become, through their
// effect: a tool on a handoff, a body of its own, updates inside.
func TestScriptPackets(t *testing.T) {
	t.Parallel()
	g := load(t, `{"initial_speaker":"a","transitions":[
		{"when":{"name":"tool_called","args":{"tool_name":"t"}},"then":{"name":"agent","args":{"agent_id":"b"}}},
		{"when":{"name":"context_equals","args":{"key":"k","value":1}},"then":{"name":"terminate","args":{"reason":"k"}}}],
		"default_target":{"name":"stay"}}`)
	for _, tc := range []struct{ lines, want string }{
		{`{tool: t}`, "a>b"},
		{`{tool: t, body: x, reason: y}`, "a>b"},
		{`{tool: u}`, "a>a"},
		{`{body: x}`, "a>a"},
		{`{handoff: c, tool: t}`, "a>c"},
		{`{handoff: c}`, "a>c"},
		{`{finish: done, tool: t}`, "a#done"},
		{`{finish: ''}`, "a#finished"},
		{`{body: x, set: {k: 1}}`, "a#k"},
		{`{text: x, set: {k: 1}}`, "a#k"},
		{`{set: {k: 1}},{text: x, delete: [k]}`, "a>a"},
		{`{set: {k: 1}},{body: x, delete: [k]}`, "a>a"},
		{`{set: {k: 1}},{speaker: b, delete: [k]},{body: x}`, "a>a"},
		{`{text: x, repeat: 3}`, "a>a a>a a>a"},
		{`{text: x, repeat: 0}`, "a>a"},
		{`{event: myapp.x}`, ""},
	} {
		trace, err := graph.Simulate(g, []string{"a", "b", "c"}, script(t, "turns: ["+tc.lines+"]"))
		equal(t, err, nil)
		equal(t, path(trace), tc.want)
	}
}
