package workflow_test

import (
	"fmt"
	"strings"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
)

var adapter = workflow.New(workflow.Options{})

// id returns the agent id of the participant with a name in a script.
func id(name string) string { return "agt-" + name }

func ids(names ...string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = id(name)
	}
	return list
}

// knobs returns a channel's knobs for a graph in which @x is the id of x.
func knobs(graph string) string {
	return `{"graph":` + strings.ReplaceAll(graph, "@", "agt-") + `}`
}

func open(t *spec.T, graph string, names ...string) *adaptertest.Play {
	t.Helper()
	p, err := adaptertest.Open(adapter, adaptertest.Metadata(adapter, knobs(graph), ids(names...)...))
	t.NoError(err)
	return p
}

func rule(when, then string) string {
	return fmt.Sprintf(`{"when":%s,"then":%s,"priority":0}`, when, then)
}

func node(name, args string) string { return fmt.Sprintf(`{"name":%q,"args":%s}`, name, args) }

func from(name string) string    { return node("from_speaker", `{"agent_id":"@`+name+`"}`) }
func to(name string) string      { return node("agent", `{"agent_id":"@`+name+`"}`) }
func called(tool string) string  { return node("tool_called", `{"tool_name":"`+tool+`"}`) }
func end(reason string) string   { return node("terminate", `{"reason":"`+reason+`"}`) }
func is(key, json string) string { return node("context_equals", `{"key":"`+key+`","value":`+json+`}`) }

func graph(initial, fallback string, maxTurns int, rules ...string) string {
	turns := "null"
	if maxTurns > 0 {
		turns = fmt.Sprint(maxTurns)
	}
	return fmt.Sprintf(`{"initial_speaker":"@%s","transitions":[%s],"default_target":%s,"max_turns":%s}`,
		initial, strings.Join(rules, ","), fallback, turns)
}

// play posts the steps of a script, one on each line: "who what -> outcome". What
// is T (text), P (packet with a body), H tool target (dynamic handoff), S tool
// (static handoff), F reason (finish) or C json (context set). The outcome is who
// is expected next, or "closed reason".
func play(t *spec.T, p *adaptertest.Play, script string) {
	t.Helper()
	for line := range strings.Lines(strings.TrimSpace(script)) {
		step, outcome, _ := strings.Cut(strings.TrimSpace(line), " -> ")
		t.NoError(p.Post(parse(t, step)))
		t.Equal(standing(p), outcome)
	}
}

func standing(p *adaptertest.Play) string {
	if p.Closed != "" {
		return "closed " + p.Closed
	}
	turn, _ := adapter.Expected(p.Meta, p.State)
	return strings.TrimPrefix(turn.Agent, "agt-")
}

func parse(t *spec.T, step string) *envelope.Envelope {
	t.Helper()
	words := strings.SplitN(step, " ", 3)
	sender, kind, rest := id(words[0]), words[1], ""
	if len(words) > 2 {
		rest = words[2]
	}
	packet := func(routing, body string) *envelope.Envelope {
		data := fmt.Sprintf(`{"routing":%s,"context_updates":{"set":{},"delete":[]},"body":%q}`, routing, body)
		return adaptertest.Envelope(sender, envelope.TypePacket, data)
	}
	switch kind {
	case "T":
		return adaptertest.Text(sender, "hello")
	case "P":
		return packet(`{"kind":"text"}`, "done")
	case "H":
		tool, target, _ := strings.Cut(rest, " ")
		return packet(fmt.Sprintf(`{"kind":"handoff","tool":%q,"reason":"","target":%q}`, tool, id(target)), "")
	case "S":
		return packet(fmt.Sprintf(`{"kind":"handoff","tool":%q,"reason":""}`, rest), "")
	case "F":
		return packet(fmt.Sprintf(`{"kind":"finish","tool":"finish","reason":%q,"summary":""}`, rest), "")
	case "C":
		return adaptertest.Envelope(sender, envelope.TypeContextSet, `{"set":`+rest+`}`)
	}
	t.Fatalf("no such step: %s", step)
	return nil
}

func state(p *adaptertest.Play) *workflow.State { return p.State.(*workflow.State) }

// vars returns the context variables as an object.
func vars(t *spec.T, p *adaptertest.Play) string {
	t.Helper()
	text, err := state(p).Facts.Vars.MarshalJSON()
	t.NoError(err)
	return string(text)
}
