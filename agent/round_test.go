package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

const noUpdates = `"context_updates":{"set":{},"delete":[]}`

// returns returns a tool that answers with a value.
func returns(name string, value any) *agent.Tool {
	return &agent.Tool{Name: name, Run: func(context.Context, *agent.Call) (any, error) { return value, nil }}
}

// workflowRound lets b take one round of a workflow that a began, and returns
// what the log then holds after a's text.
func workflowRound(t *spec.T, w *world, knobs []byte, model agent.Model, opts agent.Options) (*channel.Metadata, []*envelope.Envelope) {
	t.Helper()
	w.run("b", model, opts)
	w.run("c", says(), agent.Options{})
	_, a := w.run("a", says(), agent.Options{})
	m := w.open(t, a, agent.Opening{Type: "workflow", Participants: ids("b", "c"), Knobs: knobs})
	w.say(t, a, m.ID, "go")
	log := w.log(t, a, m.ID)
	for i, e := range log {
		if e.Type == envelope.TypeText {
			return m, log[i+1:]
		}
	}
	return m, nil
}

func types(log []*envelope.Envelope) []string {
	var list []string
	for _, e := range log {
		list = append(list, e.Type)
	}
	return list
}

func expected(w *world, m *channel.Metadata) string {
	return w.State(m.ID).(*workflow.State).Facts.Expected
}

func TestPackets(t *testing.T) {
	t.Parallel()
	toB := `{"when":{"name":"from_speaker","args":{"agent_id":"id-a"}},"then":` + toAgent("id-b") + `}`
	escalates := `{"when":{"name":"tool_called","args":{"tool_name":"escalate"}},"then":` + toAgent("id-c") + `}`
	knobs := graphOf("id-a", ended, toB, escalates)
	check(t, "seed-000#29 seed-002#97: one model round ends in exactly one packet", func(t *spec.T, w *world) {
		tools := []*agent.Tool{returns("look", "found it"), returns("think", map[string]any{"ok": true})}
		model := does(calling(turn.Call{ID: "1", Name: "look"}), calling(turn.Call{ID: "2", Name: "think"}), agent.Response{Text: "done"})
		m, log := workflowRound(t, w, knobs, model, agent.Options{Tools: tools})
		t.Equal(types(log), []string{envelope.TypePacket, envelope.TypeClosed})
		t.Equal(log[0].Sender, "id-b")
		t.Equal(log[0].Channel, m.ID)
		t.Equal(string(log[0].Data), `{"routing":{"kind":"text"},`+noUpdates+`,"body":"done"}`)
		last := model.asked()[2].Messages
		t.Equal(last[1:], []agent.Message{
			{Role: agent.Assistant, Calls: []turn.Call{{ID: "1", Name: "look"}}},
			{Role: agent.ToolResult, Text: "found it", CallID: "1"},
			{Role: agent.Assistant, Calls: []turn.Call{{ID: "2", Name: "think"}}},
			{Role: agent.ToolResult, Text: `{"ok":true}`, CallID: "2"},
		})
	})
	check(t, "seed-000#29: a silent round posts none", func(t *spec.T, w *world) {
		m, log := workflowRound(t, w, knobs, says(""), agent.Options{})
		t.Equal(len(log), 0)
		t.Equal(expected(w, m), "id-b")
	})
	check(t, "seed-002#98: a static match", func(t *spec.T, w *world) {
		model := does(agent.Response{Text: "too hot", Calls: []turn.Call{{ID: "1", Name: "escalate", Arguments: `{"reason":"fire"}`}}}, agent.Response{Text: "sent up"})
		m, log := workflowRound(t, w, knobs, model, agent.Options{Tools: []*agent.Tool{returns("escalate", "ok")}})
		t.Equal(string(log[0].Data), `{"routing":{"kind":"handoff","tool":"escalate","reason":"fire"},`+noUpdates+`,"body":"sent up"}`)
		t.Equal(expected(w, m), "id-c")
	})
	check(t, "seed-002#98: a handoff", func(t *spec.T, w *world) {
		model := does(agent.Response{Text: "over to c", Calls: []turn.Call{{ID: "1", Name: "pick"}}}, agent.Response{Text: "never asked"})
		m, log := workflowRound(t, w, knobs, model, agent.Options{Tools: []*agent.Tool{returns("pick", agent.Handoff{Target: "c", Reason: "billing"})}})
		t.Equal(string(log[0].Data), `{"routing":{"kind":"handoff","tool":"pick","reason":"billing","target":"id-c"},`+noUpdates+`,"body":"over to c"}`)
		t.Equal(expected(w, m), "id-c")
		t.Equal(len(model.asked()), 1)
	})
	check(t, "seed-002#57: the runtime resolves the name", func(t *spec.T, w *world) {
		model := does(calling(turn.Call{ID: "1", Name: "pick"}))
		m, _ := workflowRound(t, w, knobs, model, agent.Options{Tools: []*agent.Tool{returns("pick", &agent.Handoff{Target: "c"})}})
		t.Equal(expected(w, m), "id-c")
	})
	check(t, "seed-002#54: the first matching call in the order of emission", func(t *spec.T, w *world) {
		model := does(calling(turn.Call{ID: "1", Name: "look"}, turn.Call{ID: "2", Name: "escalate", Arguments: `{"reason":"first"}`}, turn.Call{ID: "3", Name: "escalate", Arguments: `{"reason":"second"}`}))
		_, log := workflowRound(t, w, knobs, model, agent.Options{Tools: []*agent.Tool{returns("look", ""), returns("escalate", "")}})
		t.Equal(string(log[0].Data), `{"routing":{"kind":"handoff","tool":"escalate","reason":"first"},`+noUpdates+`,"body":""}`)
	})
	test(t, "an id that the model uses again is another call's", func(t *spec.T, w *world) {
		tools := []*agent.Tool{returns("look", "found"), returns("think", "thought"), returns("pick", agent.Handoff{Target: "c"})}
		model := does(
			calling(turn.Call{ID: "call_0", Name: "look"}, turn.Call{Name: "think"}, turn.Call{ID: "call-2", Name: "look"}),
			calling(turn.Call{ID: "call_0", Name: "think"}),
			calling(turn.Call{ID: "call_0", Name: "pick"}),
		)
		m, log := workflowRound(t, w, knobs, model, agent.Options{Tools: tools})
		t.Equal(string(log[0].Data), `{"routing":{"kind":"handoff","tool":"pick","reason":"","target":"id-c"},`+noUpdates+`,"body":""}`)
		t.Equal(expected(w, m), "id-c")
		t.Equal(model.asked()[2].Messages[1:], []agent.Message{
			{Role: agent.Assistant, Calls: []turn.Call{{ID: "call_0", Name: "look"}, {ID: "call-2", Name: "think"}, {ID: "call-3", Name: "look"}}},
			{Role: agent.ToolResult, Text: "found", CallID: "call_0"},
			{Role: agent.ToolResult, Text: "thought", CallID: "call-2"},
			{Role: agent.ToolResult, Text: "found", CallID: "call-3"},
			{Role: agent.Assistant, Calls: []turn.Call{{ID: "call-4", Name: "think"}}},
			{Role: agent.ToolResult, Text: "thought", CallID: "call-4"},
		})
	})
	check(t, "seed-002#55: no match gives no tool", func(t *spec.T, w *world) {
		model := does(calling(turn.Call{ID: "1", Name: "look"}), agent.Response{Text: "hm"})
		_, log := workflowRound(t, w, knobs, model, agent.Options{Tools: []*agent.Tool{returns("look", "")}})
		t.Equal(string(log[0].Data), `{"routing":{"kind":"text"},`+noUpdates+`,"body":"hm"}`)
	})
	test(t, "a static match counts though the tool failed or is not there", func(t *spec.T, w *world) {
		model := does(calling(turn.Call{ID: "1", Name: "escalate"}))
		m, _ := workflowRound(t, w, knobs, model, agent.Options{})
		t.Equal(expected(w, m), "id-c")
		t.Equal(model.asked()[1].Messages[2].Text, "Error: unknown tool 'escalate'")
	})
	test(t, "a finish ends the channel", func(t *spec.T, w *world) {
		model := does(calling(turn.Call{ID: "1", Name: "stop"}))
		_, log := workflowRound(t, w, knobs, model, agent.Options{Tools: []*agent.Tool{returns("stop", agent.Finish{Reason: "sold out", Summary: "all gone"})}})
		t.Equal(string(log[0].Data), `{"routing":{"kind":"finish","tool":"stop","reason":"sold out","summary":"all gone"},`+noUpdates+`,"body":""}`)
		t.Equal(string(log[1].Data), `{"reason":"sold out","channel_id":"`+log[1].Channel+`"}`)
	})
	check(t, "seed-002#99: set_context(...) inside a tool lands as its own EV_CONTEXT_SET", func(t *spec.T, w *world) {
		routed := graphOf("id-a", ended, toB, `{"when":{"name":"context_equals","args":{"key":"urgent","value":true}},"then":`+toAgent("id-c")+`}`)
		tool := agent.NewTool("flag", "", `{}`, func(ctx context.Context, call *agent.Call, _ struct{}) (any, error) {
			return "flagged", call.Turn.SetContext(ctx, "urgent", true)
		})
		m, log := workflowRound(t, w, routed, does(calling(turn.Call{ID: "1", Name: "flag"}), agent.Response{Text: "done"}), agent.Options{Tools: []*agent.Tool{tool}})
		t.Equal(types(log), []string{envelope.TypeContextSet, envelope.TypePacket})
		t.Equal(string(log[0].Data), `{"set":{"urgent":true}}`)
		t.Equal(log[0].Causation, "")
		t.True(log[0].Audience == nil, "it goes to everyone")
		t.Equal(expected(w, m), "id-c")
	})
	test(t, "a tool that ends the round", func(t *spec.T, w *world) {
		last := returns("bye", "ok")
		last.Ends = true
		model := does(agent.Response{Text: "so long", Calls: []turn.Call{{Name: "bye"}}}, agent.Response{Text: "never asked"})
		_, log := workflowRound(t, w, knobs, model, agent.Options{Tools: []*agent.Tool{last}})
		t.Equal(string(log[0].Data), `{"routing":{"kind":"text"},`+noUpdates+`,"body":"so long"}`)
	})
	test(t, "a model that never stops calling fails its turn", func(t *spec.T, w *world) {
		forever := agent.ModelFunc(func(context.Context, *agent.Prompt) (*agent.Response, error) {
			r := calling(turn.Call{Name: "look"})
			return &r, nil
		})
		_, log := workflowRound(t, w, knobs, forever, agent.Options{Steps: 3, Tools: []*agent.Tool{returns("look", "")}})
		t.Equal(len(log), 0)
		t.Contains(w.Failures()[0].Error, "still calls tools after 3 steps")
	})
	test(t, "a model that calls too many tools fails its turn before they run", func(t *spec.T, w *world) {
		ran := 0
		look := &agent.Tool{Name: "look", Run: func(context.Context, *agent.Call) (any, error) { ran++; return "", nil }}
		many := calling(make([]turn.Call, 4)...)
		for i := range many.Calls {
			many.Calls[i].Name = "look"
		}
		_, log := workflowRound(t, w, knobs, does(calling(turn.Call{Name: "look"}), many), agent.Options{Calls: 4, Tools: []*agent.Tool{look}})
		t.Equal(len(log), 0)
		t.Equal(ran, 1)
		t.Contains(w.Failures()[0].Error, "called 5 tools in one turn, and may call 4")
	})
}

func TestTools(t *testing.T) {
	t.Parallel()
	check(t, "seed-002#105: a refused call does not run", func(t *spec.T, w *world) {
		ran := 0
		var asked []string
		tool := &agent.Tool{Name: "pay", Confirm: true, Run: func(context.Context, *agent.Call) (any, error) { ran++; return "paid", nil }}
		free := &agent.Tool{Name: "look", Run: func(context.Context, *agent.Call) (any, error) { return "seen", nil }}
		model := does(calling(turn.Call{ID: "1", Name: "pay", Arguments: `{"n":1}`}, turn.Call{ID: "2", Name: "look"}, turn.Call{ID: "3", Name: "pay", Arguments: `{"n":2}`}), agent.Response{Text: "ok"})
		w.run("b", model, agent.Options{Tools: []*agent.Tool{tool, free}, Confirm: func(_ context.Context, call *agent.Call) error {
			asked = append(asked, call.Name+call.Arguments)
			if call.Arguments == `{"n":1}` {
				return errors.New("too expensive")
			}
			return nil
		}})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		w.say(t, a, m.ID, "pay!")
		t.Equal(asked, []string{`pay{"n":1}`, `pay{"n":2}`})
		t.Equal(ran, 1)
		results := model.asked()[1].Messages[2:]
		t.Equal([]string{results[0].Text, results[1].Text, results[2].Text}, []string{"Error: 'pay' was not confirmed: too expensive", "seen", "paid"})
	})
	check(t, "seed-002#105: without anyone to confirm it never runs", func(t *spec.T, w *world) {
		ran := false
		tool := &agent.Tool{Name: "pay", Confirm: true, Run: func(context.Context, *agent.Call) (any, error) { ran = true; return "", nil }}
		model := does(calling(turn.Call{ID: "1", Name: "pay"}))
		b := agent.New(w.Join("b"), model, agent.Options{Tools: []*agent.Tool{tool}})
		_, err := b.Ask(w.ctx, "pay")
		t.NoError(err)
		t.False(ran, "it ran")
		t.Contains(model.asked()[1].Messages[2].Text, "Error: 'pay' needs a confirmation")
	})
	check(t, "ag2-channels#93: the plugin attaches its tools, and say is not among them", func(t *spec.T, w *world) {
		b := says("ok")
		w.run("b", b, agent.Options{Tools: []*agent.Tool{returns("mine", "")}})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "discussion", Participants: ids("b")})
		w.say(t, a, m.ID, "hello")
		t.Equal(toolNames(b.asked()[0]), []string{"mine", "delegate", "peers", "channels", "tasks", "context"})
	})
	check(t, "ag2-channels#94: say is there where the channel offers it", func(t *spec.T, w *world) {
		b := says("ok", "ok")
		w.run("b", b, agent.Options{NoNetworkTools: true})
		_, a := w.run("a", says(), agent.Options{})
		for i, kind := range []string{"conversation", "discussion"} {
			m := w.open(t, a, agent.Opening{Type: kind, Participants: ids("b")})
			w.say(t, a, m.ID, "hello")
			t.Equal(toolNames(b.asked()[i]), [][]string{{"say"}, nil}[i])
		}
	})
	test(t, "a tool's failures are shown to the model", func(t *spec.T, w *world) {
		tools := []*agent.Tool{
			{Name: "fails", Run: func(context.Context, *agent.Call) (any, error) { return nil, errors.New("no luck") }},
			{Name: "panics", Run: func(context.Context, *agent.Call) (any, error) { panic("oh") }},
			returns("odd", func() {}), returns("nil", nil), returns("none", (*agent.Handoff)(nil)),
			agent.NewTool("typed", "", "{}", func(_ context.Context, _ *agent.Call, in struct{ N int }) (any, error) { return in.N, nil }),
		}
		calls := []turn.Call{{Name: "fails"}, {Name: "panics"}, {Name: "odd"}, {Name: "nil"}, {Name: "none"}, {Name: "typed", Arguments: `{"N":"x"}`}, {Name: "typed", Arguments: `{"N":7}`}, {Name: "typed"}}
		model := does(calling(calls...), agent.Response{Text: "end"})
		b := agent.New(w.Join("b"), model, agent.Options{Tools: tools})
		text, err := b.Ask(w.ctx, "try")
		t.NoError(err)
		t.Equal(text, "end")
		var shown []string
		for _, m := range model.asked()[1].Messages[2:] {
			shown = append(shown, m.Text)
		}
		t.Equal(shown[:2], []string{"Error: no luck", "Error: agent: panic: oh"})
		t.Contains(shown[2], "Error: the result is not JSON")
		t.Equal(shown[3:5], []string{"", ""})
		t.Contains(shown[5], "Error: arguments of typed")
		t.Equal(shown[6:], []string{"7", "0"})
	})
	test(t, "context is for workflows", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "discussion", Participants: ids("b")})
		err := agent.SetContext(w.ctx, a, m, "k", 1)
		t.ErrorContains(err, "set_context", "discussion")
		t.Equal(fault.CodeOf(err), fault.Invalid)
		t.ErrorContains(agent.DeleteContext(w.ctx, a, m, "k"), "delete_context", "discussion")
		var outside agent.Turn
		t.ErrorContains(outside.SetContext(w.ctx, "k", 1), "set_context", "no channel")
		t.ErrorContains(outside.DeleteContext(w.ctx, "k"), "delete_context", "no channel")
		t.Equal(len(w.log(t, a, m.ID, envelope.TypeContextSet)), 0)
	})
	check(t, "seed-000#79: a value that is not JSON is refused before anything is sent", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "workflow", Participants: ids("b"), Knobs: graphOf("id-a", ended)})
		before := len(w.log(t, a, m.ID))
		for _, bad := range []any{func() {}, make(chan int), map[string]any{"x": func() {}}} {
			err := agent.SetContext(w.ctx, a, m, "k", bad)
			t.ErrorContains(err, "not JSON")
			t.Equal(fault.CodeOf(err), fault.Invalid)
		}
		t.Equal(len(w.log(t, a, m.ID)), before)
		t.NoError(agent.SetContext(w.ctx, a, m, "k", nil))
		t.NoError(agent.DeleteContext(w.ctx, a, m, "k"))
		sets := w.log(t, a, m.ID, envelope.TypeContextSet)
		t.Equal(string(sets[0].Data), `{"set":{"k":null}}`)
		t.Equal(string(sets[1].Data), `{"delete":["k"]}`)
	})
	check(t, "seed-000#81: the default handler does not answer a custom type", func(t *spec.T, w *world) {
		b := says("never")
		w.run("b", b, agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		_, err := a.Post(w.ctx, &envelope.Envelope{Channel: m.ID, Sender: "id-a", Type: "app.review", Data: []byte(`{"text":"x","n":9007199254740993}`)})
		t.NoError(err)
		w.settle()
		t.Equal(len(b.asked()), 0)
		t.Equal(w.lines(t, a, m.ID), []string(nil))
	})
	check(t, "seed-000#81: a handler of the application receives it in full", func(t *spec.T, w *world) {
		var got []*envelope.Envelope
		w.run("b", says(), agent.Options{Handle: func(_ context.Context, _ *agent.Agent, e *envelope.Envelope) (bool, error) {
			if strings.HasPrefix(e.Type, "app.") {
				got = append(got, e)
				return true, nil
			}
			return false, nil
		}})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		_, err := a.Post(w.ctx, &envelope.Envelope{Channel: m.ID, Sender: "id-a", Type: "app.review", Data: []byte(`{"text":"x","n":9007199254740993}`)})
		t.NoError(err)
		w.settle()
		t.Equal(len(got), 1)
		t.Equal(string(got[0].Data), `{"text":"x","n":9007199254740993}`)
		t.Equal(got[0].Type, "app.review")
	})
}
