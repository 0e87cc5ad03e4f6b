package graph_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/graph"
)

func drawn(t *testing.T) *graph.Graph {
	t.Helper()
	f, err := graph.ParseFile([]byte(`
initial_speaker: a
max_turns: 9
transitions:
  - when: {name: from_speaker, args: {agent_id: a}}
    then: {name: agent, args: {agent_id: b}}
  - when: {name: all_of, args: {conditions: [{name: tool_called, args: {tool_name: t}}, {name: from_speaker, args: {agent_id: b}}]}}
    then: {name: stay}
  - when: {name: any_of, args: {conditions: [{name: from_speaker, args: {agent_id: b}}, {name: from_speaker, args: {agent_id: c}}]}}
    then: {name: revert_to_initiator}
    priority: 2
  - when: {name: context_equals, args: {key: k, value: "say \"<hi>\""}}
    then: {name: round_robin}
  - when: {name: any_of, args: {conditions: [{name: always}, {name: from_speaker, args: {agent_id: c}}]}}
    then: {name: stay}
  - when: {name: any_of, args: {conditions: []}}
    then: {name: terminate, args: {reason: ""}}
default_target: {name: terminate, args: {reason: done}}
`), nil)
	equal(t, err, nil)
	return f.Graph
}

func TestMermaid(t *testing.T) {
	t.Parallel()
	equal(t, graph.Mermaid(drawn(t), graph.Drawing{Names: map[string]string{"b": "Bob"}}), strings.TrimPrefix(`
flowchart LR
  n0(("start"))
  n1["a"]
  n2["Bob"]
  n3(["initiator"])
  n4["c"]
  n5(["any speaker"])
  n6(["next in order"])
  n7(["same speaker"])
  n8((("workflow_terminated")))
  n9((("done")))
  n0 --> n1
  n1 -->|"[0]"| n2
  n2 -->|"[1] tool_called(t)"| n2
  n2 -->|"[2] (priority 2)"| n3
  n4 -->|"[2] (priority 2)"| n3
  n5 -->|"[3] context_equals(k = #quot;say \#quot;#lt;hi#gt;\#quot;#quot;)"| n6
  n5 -->|"[4] any_of(always, from_speaker(c))"| n7
  n5 -->|"[5] any_of()"| n8
  n5 -.->|"otherwise"| n9
`, "\n"))
}

func TestDOT(t *testing.T) {
	t.Parallel()
	equal(t, graph.DOT(drawn(t), graph.Drawing{Creator: "a"}), strings.TrimPrefix(`
digraph workflow {
  rankdir=LR;
  n0 [label="start", shape=circle];
  n1 [label="a", shape=box];
  n2 [label="b", shape=box];
  n3 [label="c", shape=box];
  n4 [label="any speaker", shape=box, style=rounded];
  n5 [label="next in order", shape=box, style=rounded];
  n6 [label="same speaker", shape=box, style=rounded];
  n7 [label="workflow_terminated", shape=doublecircle];
  n8 [label="done", shape=doublecircle];
  n0 -> n1 [label=""];
  n1 -> n2 [label="[0]"];
  n2 -> n2 [label="[1] tool_called(t)"];
  n2 -> n1 [label="[2] (priority 2)"];
  n3 -> n1 [label="[2] (priority 2)"];
  n4 -> n5 [label="[3] context_equals(k = \"say \\\"<hi>\\\"\")"];
  n4 -> n6 [label="[4] any_of(always, from_speaker(c))"];
  n4 -> n7 [label="[5] any_of()"];
  n4 -> n8 [label="otherwise", style=dashed];
}
`, "\n"))
}

func TestDrawnPath(t *testing.T) {
	t.Parallel()
	g := load(t, `{"initial_speaker":"a","transitions":[
		{"when":{"name":"from_speaker","args":{"agent_id":"a"}},"then":{"name":"agent","args":{"agent_id":"b"}}},
		{"when":{"name":"context_equals","args":{"key":"k","value":1}},"then":{"name":"round_robin"}},
		{"when":{"name":"from_speaker","args":{"agent_id":"c"}},"then":{"name":"terminate","args":{"reason":"out"}}}],
		"default_target":{"name":"agent","args":{"agent_id":"a"}}}`)
	trace, err := graph.Simulate(g, []string{"a", "b", "c"}, script(t, `turns: [{text: x}, {text: x}, {text: x}, {body: x, set: {k: 1}}, {tool: t, handoff: b}, {finish: enough}]`))
	equal(t, err, nil)
	equal(t, path(trace), "a>b b>a a>b b>c c>b b#enough")
	equal(t, graph.Mermaid(g, graph.Drawing{Path: trace.Path()}), strings.TrimPrefix(`
flowchart LR
  n0(("start"))
  n1["a"]
  n2["b"]
  n3(["any speaker"])
  n4(["next in order"])
  n5["c"]
  n6((("out")))
  n7((("enough")))
  n0 --> n1
  n1 -->|"[0] · turns 1, 3"| n2
  n3 -->|"[1] context_equals(k = 1) · turn 4"| n4
  n5 -->|"[2]"| n6
  n3 -.->|"otherwise · turn 2"| n1
  n2 -->|"· turn 2"| n1
  n2 -->|"· turn 4"| n5
  n5 -->|"handoff t · turn 5"| n2
  n2 -->|"finish · turn 6"| n7
  classDef taken stroke:#d33,stroke-width:3px
  class n0,n1,n2,n5,n7 taken
  linkStyle 0,1,2,4,5,6,7,8 stroke:#d33,stroke-width:3px
`, "\n"))
	equal(t, graph.DOT(g, graph.Drawing{Path: trace.Path()[:1]}), strings.TrimPrefix(`
digraph workflow {
  rankdir=LR;
  n0 [label="start", shape=circle, color="#dd3333", penwidth=3];
  n1 [label="a", shape=box, color="#dd3333", penwidth=3];
  n2 [label="b", shape=box, color="#dd3333", penwidth=3];
  n3 [label="any speaker", shape=box, style=rounded];
  n4 [label="next in order", shape=box, style=rounded];
  n5 [label="c", shape=box];
  n6 [label="out", shape=doublecircle];
  n0 -> n1 [label="", color="#dd3333", penwidth=3];
  n1 -> n2 [label="[0] · turn 1", color="#dd3333", penwidth=3];
  n3 -> n4 [label="[1] context_equals(k = 1)"];
  n5 -> n6 [label="[2]"];
  n3 -> n1 [label="otherwise", style=dashed];
}
`, "\n"))
}

func TestDrawnSpeakers(t *testing.T) {
	t.Parallel()
	g := build(t, rules("a",
		rule(graph.AllOf{Conditions: graph.Conditions{from("a"), graph.ToolCalled{ToolName: "t"}, is("k", "1")}}, to("b")),
		rule(graph.AnyOf{Conditions: graph.Conditions{from("a"), from("b"), from("c")}}, graph.Stay{}),
	))
	trace, err := graph.Simulate(g, trio, script(t, `turns: [{text: x}]`))
	equal(t, err, nil)
	// Of the arrows of one rule only the speaker's own was taken.
	equal(t, graph.Mermaid(g, graph.Drawing{Path: trace.Path()}), strings.TrimPrefix(`
flowchart LR
  n0(("start"))
  n1["a"]
  n2["b"]
  n3["c"]
  n4(["any speaker"])
  n5((("fell_off")))
  n0 --> n1
  n1 -->|"[0] tool_called(t), context_equals(k = 1)"| n2
  n1 -->|"[1] · turn 1"| n1
  n2 -->|"[1]"| n2
  n3 -->|"[1]"| n3
  n4 -.->|"otherwise"| n5
  classDef taken stroke:#d33,stroke-width:3px
  class n0,n1 taken
  linkStyle 0,2 stroke:#d33,stroke-width:3px
`, "\n"))
}

func TestDrawnLabelsAreText(t *testing.T) {
	t.Parallel()
	const nasty = "#1 & <b>|`x`\r\n\"q\" \\"
	g := build(t, graph.Definition{InitialSpeaker: nasty, Default: Pickle{Who: "x"}})
	mermaid, dot := graph.Mermaid(g, graph.Drawing{}), graph.DOT(g, graph.Drawing{})
	equal(t, strings.Contains(mermaid, `n1["#35;1 #amp; #lt;b#gt;#124;#96;x#96;  #quot;q#quot; \"]`), true)
	equal(t, strings.Contains(dot, `n1 [label="#1 & <b>|`+"`x`"+`  \"q\" \\", shape=box];`), true)
	// A node without words of its own is shown by name and args.
	equal(t, strings.Contains(dot, `[label="pickle{\"who\":\"x\"}", shape=box, style=rounded];`), true)
	plain := build(t, graph.Definition{InitialSpeaker: "a", Default: mine{}})
	equal(t, strings.Contains(graph.DOT(plain, graph.Drawing{}), `[label="mine", shape=box, style=rounded];`), true)
}

// Pickle is a target that AG2 does not know.
type Pickle struct {
	Who string `json:"who"`
}

func (Pickle) Name() string { return "pickle" }

func (p Pickle) Resolve(*graph.Facts, *graph.Turn) graph.Decision {
	return graph.Decision{Speaker: p.Who}
}
