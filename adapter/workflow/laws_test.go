package workflow_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

func pick(t *rapid.T, label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(t, label)
}

func drawCondition(t *rapid.T, depth int) string {
	agent := func() string { return pick(t, "agent", "a", "b", "c", "ghost") }
	kinds := []string{"always", "from", "tool", "equals", "in", "threshold"}
	if depth > 0 {
		kinds = append(kinds, "all_of", "any_of")
	}
	switch kind := rapid.SampledFrom(kinds).Draw(t, "condition"); kind {
	case "from":
		return from(agent())
	case "tool":
		return called(pick(t, "tool", "go", "stop"))
	case "equals":
		return is(pick(t, "key", "k", "l"), pick(t, "value", "null", "1", "1.0", "true", `"v"`, `{"x":[1]}`))
	case "in":
		return node("context_in", `{"key":"k","values":[1,"v",null]}`)
	case "threshold":
		return node("context_threshold", `{"key":"k","threshold":`+pick(t, "threshold", "0", "1.5", "1e3")+`}`)
	case "all_of", "any_of":
		return node(kind, `{"conditions":[`+drawCondition(t, depth-1)+`,`+drawCondition(t, depth-1)+`]}`)
	}
	return node("always", "{}")
}

func drawTarget(t *rapid.T) string {
	return pick(t, "target", to("a"), to("b"), to("ghost"), node("agent", `{"agent_id":""}`), node("round_robin", "{}"),
		node("stay", "{}"), node("revert_to_initiator", "{}"), end("over"), end(""), `null`)
}

func drawGraph(t *rapid.T) string {
	rules := make([]string, rapid.IntRange(0, 4).Draw(t, "rules"))
	for i := range rules {
		rules[i] = fmt.Sprintf(`{"when":%s,"then":%s,"priority":%d}`, drawCondition(t, 2), drawTarget(t), rapid.IntRange(-1, 2).Draw(t, "priority"))
	}
	return graph(pick(t, "initial", "a", "b"), drawTarget(t), rapid.IntRange(0, 6).Draw(t, "cap"), rules...)
}

func drawPayload(t *rapid.T, eventType string, agents []string) string {
	value := func() string {
		return pick(t, "json", "1", "1.00", "-0", "9007199254740993", "1e400", `"v"`, `"\u00e9"`, "null", "true", `{"x": [1, 2]}`, "[]")
	}
	update := fmt.Sprintf(`{"set":{"k":%s,"l":%s},"delete":["%s"]}`, value(), value(), pick(t, "key", "k", "l", "m"))
	switch eventType {
	case envelope.TypeContextSet:
		return update
	case envelope.TypePacket:
		routing := fmt.Sprintf(`{"kind":"%s","tool":"%s","reason":"%s","target":"%s"}`, pick(t, "kind", "text", "handoff", "finish", ""),
			pick(t, "tool", "go", "stop", ""), pick(t, "reason", "why", ""), pick(t, "target", append(agents, "")...))
		return fmt.Sprintf(`{"routing":%s,"context_updates":%s,"body":"b"}`, routing, update)
	}
	return `{"text":"hi"}`
}

func TestLaws(t *testing.T) {
	t.Parallel()
	adaptertest.Exercise(t, adaptertest.Subject{
		Adapter: adapter,
		Metadata: func(t *rapid.T) *channel.Metadata {
			all := strings.TrimSuffix(knobs(drawGraph(t)), "}")
			if rapid.Bool().Draw(t, "supervised") {
				all += `,"supervisors":["agt-b"]`
			}
			names := ids("a", "b", "c")[:rapid.IntRange(2, 3).Draw(t, "participants")]
			return adaptertest.Metadata(adapter, all+`,"context_vars":{"k":1}}`, names...)
		},
		Payload: drawPayload,
	})
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"participant_order":["a","b"],"expected_next_speaker":null,"last_speaker_id":"a","last_envelope_id":"e","turn_count":1,` +
		`"pending_close_reason":"x","creator_id":"a","graph_data":{"initial_speaker":"a"},"context_vars":{"k":[1.0]},"supervisors":["b"]}`))
	f.Add([]byte(`{"graph_data":{"initial_speaker":""}}`))
	f.Fuzz(func(t *testing.T, data []byte) { adaptertest.FuzzState(t, adapter, data) })
}
