package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-hub/parley/graph"
)

// A pattern is a graph of the cookbook with the runs that it was written for.
type pattern struct {
	name         string
	participants string // the first is the creator
	graph        string
	runs         []run
	check        []string // codes of findings
}

// A run is a script's turns and what each turn led to, as "speaker>next" or
// "speaker#close reason"; lines that are no turns are left out.
type run struct {
	name   string
	script string
	want   string
	vars   string
}

func transitions(list ...string) string { return "[" + strings.Join(list, ",") + "]" }

func fromTo(a, b string) string {
	return fmt.Sprintf(`{"when":{"name":"from_speaker","args":{"agent_id":%q}},"then":{"name":"agent","args":{"agent_id":%q}},"priority":0}`, a, b)
}

func fromEnd(a, reason string) string {
	return fmt.Sprintf(`{"when":{"name":"from_speaker","args":{"agent_id":%q}},"then":{"name":"terminate","args":{"reason":%q}},"priority":0}`, a, reason)
}

func flagTo(key, value, agent string) string {
	return fmt.Sprintf(`{"when":{"name":"context_equals","args":{"key":%q,"value":%s}},"then":{"name":"agent","args":{"agent_id":%q}},"priority":0}`, key, value, agent)
}

func flagEnd(key, value, reason string) string {
	return fmt.Sprintf(`{"when":{"name":"context_equals","args":{"key":%q,"value":%s}},"then":{"name":"terminate","args":{"reason":%q}},"priority":0}`, key, value, reason)
}

func toolTo(tool, agent string) string {
	return fmt.Sprintf(`{"when":{"name":"tool_called","args":{"tool_name":%q}},"then":{"name":"agent","args":{"agent_id":%q}},"priority":0}`, tool, agent)
}

func whole(initial, list, fallback, turns string) string {
	return fmt.Sprintf(`{"initial_speaker":%q,"transitions":%s,"default_target":%s,"max_turns":%s}`, initial, list, fallback, turns)
}

func ending(reason string) string {
	return fmt.Sprintf(`{"name":"terminate","args":{"reason":%q}}`, reason)
}

const (
	says   = "{text: hello}"
	packs  = "{body: hello}"
	revert = `{"name":"revert_to_initiator","args":{}}`
)

func patterns() []pattern {
	return []pattern{
		{
			name: "pipeline", participants: "@desk @checker @packer @courier",
			graph: whole("@desk", transitions(fromTo("@desk", "@checker"), fromTo("@checker", "@packer"), fromTo("@packer", "@courier")), ending("sequence_complete"), "4"),
			runs: []run{{
				script: says + packs + packs + packs,
				want:   "@desk>@checker @checker>@packer @packer>@courier @courier#sequence_complete",
			}},
		},
		{
			name: "hierarchical", participants: "@front @lead @finder @writer",
			graph: whole("@front", transitions(fromEnd("@writer", "delivered"), fromTo("@finder", "@lead"), fromTo("@front", "@lead")), ending("fell_off"), "10"),
			runs: []run{
				{
					name: "through both", script: says + "{tool: ask_finder, handoff: '@finder'}" + packs + "{tool: ask_writer, handoff: '@writer'}" + packs,
					want: "@front>@lead @lead>@finder @finder>@lead @lead>@writer @writer#delivered",
				},
				{name: "prose", script: says + packs, want: "@front>@lead @lead#fell_off"},
			},
		},
		{
			name: "star", participants: "@asker @core @tides @trains",
			graph: whole("@asker", transitions(fromTo("@tides", "@core"), fromTo("@trains", "@core"),
				`{"when":{"name":"from_speaker","args":{"agent_id":"@core"}},"then":{"name":"stay","args":{}},"priority":0}`, fromTo("@asker", "@core")), ending("fell_off"), "20"),
			runs: []run{{
				script: says + "{tool: ask_spoke, handoff: '@tides'}" + packs + "{body: still waiting}" + "{tool: ask_spoke, handoff: '@trains'}" + packs + "{set: {summary: fine}}{finish: answered}",
				want:   "@asker>@core @core>@tides @tides>@core @core>@core @core>@trains @trains>@core @core#answered", vars: `{"summary":"fine"}`,
			}},
		},
		{
			name: "coordinator", participants: "@client @chair @legal @ops",
			graph: whole("@client", "[]", `{"name":"agent","args":{"agent_id":"@chair"}}`, "14"),
			runs: []run{
				{
					name: "finished", script: says + "{tool: pass, handoff: '@legal'}" + packs + "{tool: pass, handoff: '@ops'}" + packs + "{finish: ''}",
					want: "@client>@chair @chair>@legal @legal>@chair @chair>@ops @ops>@chair @chair#finished",
				},
				{
					name: "without finish", script: says + "{body: b, repeat: 13}",
					want: "@client>@chair" + strings.Repeat(" @chair>@chair", 12) + " @chair#max_turns",
				},
			},
		},
		{
			name: "coordinator by revert", participants: "@chair @legal @ops",
			graph: whole("@chair", "[]", revert, "14"),
			runs: []run{{
				script: "{handoff: '@legal'}" + packs + "{handoff: '@ops'}" + packs + "{finish: ''}",
				want:   "@chair>@legal @legal>@chair @chair>@ops @ops>@chair @chair#finished",
			}},
		},
		{
			name: "escalation", participants: "@caller @l1 @l2 @l3",
			graph: whole("@caller", transitions(`{"when":{"name":"tool_called","args":{"tool_name":"settle"}},"then":{"name":"terminate","args":{"reason":"settled"}},"priority":0}`, fromTo("@caller", "@l1")), ending("fell_off"), "10"),
			runs: []run{
				{
					name: "all the way up", script: says + "{tool: up, handoff: '@l2'}{tool: up, handoff: '@l3'}{set: {answer: 42}}{tool: settle}",
					want: "@caller>@l1 @l1>@l2 @l2>@l3 @l3#settled", vars: `{"answer":42}`,
				},
				{name: "short", script: says + "{tool: settle}", want: "@caller>@l1 @l1#settled"},
			},
		},
		{
			name: "redundant", participants: "@desk @plain @witty @geek @judge",
			graph: whole("@desk", transitions(fromTo("@desk", "@plain"), fromTo("@plain", "@witty"), fromTo("@witty", "@geek"), fromTo("@geek", "@judge")), ending("sequence_complete"), "5"),
			runs: []run{{
				script: says + "{body: b, repeat: 4}",
				want:   "@desk>@plain @plain>@witty @witty>@geek @geek>@judge @judge#sequence_complete",
			}},
		},
		{
			name: "feedback loop", participants: "@brief @author @editor",
			graph: whole("@brief", transitions(flagEnd("accepted", "true", "accepted"), fromTo("@brief", "@author"), fromTo("@author", "@editor"), fromTo("@editor", "@author")), ending("exhausted"), "10"),
			runs: []run{
				{
					name: "accepted", script: says + packs + packs + packs + "{set: {accepted: true}}" + packs,
					want: "@brief>@author @author>@editor @editor>@author @author>@editor @editor#accepted", vars: `{"accepted":true}`,
				},
				{
					name: "never accepted", script: says + "{body: b, repeat: 9}",
					want: "@brief>@author" + strings.Repeat(" @author>@editor @editor>@author", 4) + " @author#max_turns",
				},
			},
		},
		{
			name: "context routing by handoff", participants: "@asker @sorter @invoices @bugs @misc",
			graph: whole("@asker", transitions(fromEnd("@invoices", "invoices_done"), fromEnd("@bugs", "bugs_done"), fromEnd("@misc", "misc_done"), fromTo("@asker", "@sorter")), ending("fell_off"), "null"),
			runs: []run{{
				script: says + "{tool: classify_bug, handoff: '@bugs'}" + packs,
				want:   "@asker>@sorter @sorter>@bugs @bugs#bugs_done",
			}},
		},
		{
			name: "context routing by flag", participants: "@asker @sorter @bugs @misc",
			graph: whole("@asker", transitions(fromEnd("@bugs", "bugs_done"), fromEnd("@misc", "misc_done"), flagTo("topic", `"bugs"`, "@bugs"), fromTo("@sorter", "@misc"), fromTo("@asker", "@sorter")), ending("fell_off"), "null"),
			runs: []run{
				{name: "bugs", script: says + "{set: {topic: bugs}}" + packs + packs, want: "@asker>@sorter @sorter>@bugs @bugs#bugs_done", vars: `{"topic":"bugs"}`},
				{name: "unset", script: says + packs + packs, want: "@asker>@sorter @sorter>@misc @misc#misc_done"},
				{name: "silent round", script: says + "{set: {topic: bugs}}", want: "@asker>@sorter", vars: `{"topic":"bugs"}`},
			},
		},
		{
			name: "triage with tasks", participants: "@triage @digger @scribe",
			graph: whole("@triage", transitions(flagEnd("drained", "true", "all_done"), fromTo("@digger", "@triage"), fromTo("@scribe", "@triage"), flagTo("job", `"dig"`, "@digger"), flagTo("job", `"write"`, "@scribe")), ending("idle"), "30"),
			runs: []run{{
				script: "{set: {job: dig}}" + packs + packs + "{set: {job: write}}" + packs + packs + "{set: {drained: true}}" + packs,
				want:   "@triage>@digger @digger>@triage @triage>@scribe @scribe>@triage @triage#all_done", vars: `{"job":"write","drained":true}`,
			}},
		},
		{
			name: "triage with the rules the wrong way round", participants: "@triage @digger @scribe",
			graph: whole("@triage", transitions(flagTo("job", `"dig"`, "@digger"), fromTo("@digger", "@triage")), ending("idle"), "4"),
			runs: []run{{
				script: "{set: {job: dig}}{body: b, repeat: 4}",
				want:   "@triage>@digger @digger>@digger @digger>@digger @digger#max_turns", vars: `{"job":"dig"}`,
			}},
			check: []string{"sticky_loop"},
		},
		{
			name: "swarm with revert", participants: "@triage @eng",
			graph: whole("@triage", transitions(toolTo("to_eng", "@eng"), `{"when":{"name":"from_speaker","args":{"agent_id":"@eng"}},"then":`+revert+`,"priority":0}`), ending("fell_off"), "null"),
			runs:  []run{{script: "{tool: to_eng}" + says, want: "@triage>@eng @eng>@triage"}},
		},
		{
			name: "manager", participants: "@mgr @a @b",
			graph: whole("@mgr", transitions(toolTo("ask_a", "@a"), toolTo("ask_b", "@b")), revert, "null"),
			runs:  []run{{script: "{tool: ask_a}" + says + "{tool: ask_b}" + says, want: "@mgr>@a @a>@mgr @mgr>@b @b>@mgr"}},
		},
		{
			name: "priority", participants: "@o @p @q",
			graph: whole("@o", `[{"when":{"name":"always","args":{}},"then":{"name":"agent","args":{"agent_id":"@p"}},"priority":10},{"when":{"name":"always","args":{}},"then":{"name":"agent","args":{"agent_id":"@q"}},"priority":1}]`, ending("fell_off"), "null"),
			runs:  []run{{script: says, want: "@o>@q"}},
			check: []string{"unreachable"},
		},
		{
			name: "flag routing, sticky", participants: "@in @tri @call @rev",
			graph: whole("@in", transitions(fromTo("@in", "@tri"), flagTo("urgent", "true", "@call"), fromTo("@tri", "@rev"), fromEnd("@call", "paged")), ending("fell_off"), "5"),
			runs: []run{
				{name: "urgent", script: says + "{set: {urgent: true}}{body: b, repeat: 4}", want: "@in>@tri @tri>@call @call>@call @call>@call @call#max_turns", vars: `{"urgent":true}`},
				{name: "not urgent", script: says + packs, want: "@in>@tri @tri>@rev"},
			},
			check: []string{"sticky_loop"},
		},
		{
			name: "flag routing, ending rule first", participants: "@in @tri @call @rev",
			graph: whole("@in", transitions(fromTo("@in", "@tri"), fromEnd("@call", "paged"), flagTo("urgent", "true", "@call"), fromTo("@tri", "@rev")), ending("fell_off"), "5"),
			runs: []run{
				{name: "urgent", script: says + "{set: {urgent: true}}" + packs + packs, want: "@in>@tri @tri>@call @call#paged", vars: `{"urgent":true}`},
				{name: "deleted again", script: says + "{set: {urgent: true}}{body: b, delete: [urgent]}", want: "@in>@tri @tri>@rev"},
			},
		},
	}
}

func cookbook(t tb, name string) pattern {
	t.Helper()
	for _, p := range patterns() {
		if p.name == name {
			return p
		}
	}
	t.Fatalf("no pattern %q", name)
	return pattern{}
}

// play runs a script of flow mappings, one for each line.
func (p pattern) play(t tb, script string) *graph.Trace {
	t.Helper()
	s, err := graph.ParseScript([]byte("turns: [" + strings.ReplaceAll(script, "}{", "},{") + "]"))
	if err != nil {
		t.Fatalf("script %s: %v", script, err)
	}
	trace, err := graph.Simulate(load(t, p.graph), strings.Fields(p.participants), s)
	if err != nil {
		t.Fatalf("simulate: %v", err)
	}
	return trace
}

// path returns a trace in the notation of run.want.
func path(trace *graph.Trace) string {
	var steps []string
	for _, s := range trace.Steps {
		switch {
		case s.Refused != "":
			steps = append(steps, s.Speaker+"!"+s.Refused)
		case s.Turn == 0:
		case s.Closed != "":
			steps = append(steps, s.Speaker+"#"+s.Closed)
		default:
			steps = append(steps, s.Speaker+">"+s.Next)
		}
	}
	return strings.Join(steps, " ")
}

func TestCookbook(t *testing.T) {
	t.Parallel()
	for _, p := range patterns() {
		for _, r := range p.runs {
			t.Run(p.name+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				trace := p.play(t, r.script)
				equal(t, path(trace), r.want)
				want := r.vars
				if want == "" {
					want = `{}`
				}
				equal(t, trace.Context, vars(t, want))
				equal(t, trace.Turns, len(strings.Fields(r.want)))
			})
		}
		t.Run(p.name+"/check", func(t *testing.T) {
			t.Parallel()
			var codes []string
			for _, f := range graph.Check(load(t, p.graph), strings.Fields(p.participants)) {
				codes = append(codes, f.Code)
			}
			equal(t, codes, p.check)
		})
	}
}
