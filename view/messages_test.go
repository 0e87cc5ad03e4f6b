package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/view"
)

func event(sender, kind, data string) *envelope.Envelope {
	return &envelope.Envelope{Sender: sender, Type: kind, Data: []byte(data)}
}

// flow returns a workflow channel's input.
func flow(who string, log ...*envelope.Envelope) view.Input {
	return view.Input{Log: log, Participant: who, Name: names, Render: workflow.New(workflow.Options{})}
}

// rows shows messages without what all of them have.
func rows(t *testing.T, list []message.Envelope) []string {
	t.Helper()
	out := []string{}
	for _, e := range list {
		data, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := message.NormalizeJSON(data)
		if err != nil {
			t.Fatalf("%s is not canonical: %v", data, err)
		}
		if same, err := again.MarshalJSON(); err != nil || string(same) != string(data) {
			t.Fatalf("%s is not canonical: %s, %v", data, same, err)
		}
		text := strings.TrimPrefix(string(data), `{"schema":"agents-api.message","version":1,"type":`)
		out = append(out, strings.TrimSuffix(text, "}"))
	}
	return out
}

func TestMessages(t *testing.T) {
	t.Parallel()
	const who = `"name":"Zoe","sender_id":"a","event_type":`
	const me = `"name":"me","sender_id":"me","event_type":`
	for name, c := range map[string]struct {
		in   view.Input
		want []string
	}{
		"texts": {
			view.Input{Log: []*envelope.Envelope{text("a", "hi"), text("me", "ho")}, Participant: "me", Name: names},
			[]string{
				`"text","role":"user","content":"hi","payload":{},"metadata":{` + who + `"ag2.msg.text"}`,
				`"text","role":"assistant","content":"ho","payload":{},"metadata":{` + me + `"ag2.msg.text"}`,
			},
		},
		"ids, times, audience and cause": {
			view.Input{Participant: "me", Name: names, Log: []*envelope.Envelope{{
				ID: "e1", Sender: "a", Type: envelope.TypeText, Data: []byte(`{"text":"x"}`), Audience: []string{"me"}, Causation: "e0",
				CreatedAt: time.Date(2031, 3, 9, 17, 20, 0, 5, time.FixedZone("", 3600)),
			}}},
			[]string{`"text","role":"user","content":"x","payload":{},"metadata":{` + who + `"ag2.msg.text","audience":["me"],"causation_id":"e0"},"id":"e1","created_at":"2031-03-09 16:20:00"`},
		},
		"what is no speech": {
			view.Input{Participant: "me", Log: []*envelope.Envelope{
				event("a", envelope.TypeOpened, `{}`), event("a", "custom.thing", `{"text":"x"}`),
				event("a", envelope.TypePacket, `{"body":"not rendered here"}`),
				event("a", envelope.TypePacket, `{"routing":{"kind":"finish"}}`),
			}},
			[]string{},
		},
		"a packet's body": {
			flow("me", event("me", envelope.TypePacket, `{"body":"mine"}`), event("a", envelope.TypePacket, `{"routing":{"kind":"text"},"body":"hers"}`),
				event("a", envelope.TypePacket, `{"routing":null,"body":""}`), event("a", envelope.TypePacket, `[]`)),
			[]string{
				`"text","role":"assistant","content":"mine","payload":{},"metadata":{` + me + `"ag2.packet"}`,
				`"text","role":"user","content":"hers","payload":{},"metadata":{` + who + `"ag2.packet"}`,
			},
		},
		"one's own handoff is a call": {
			flow("me", text("a", "go"), &envelope.Envelope{
				ID: "e2", Sender: "me", Type: envelope.TypePacket,
				Data: []byte(`{"routing":{"kind":"handoff","tool":"pick","reason":"billing","target":"z"},"body":"Draft."}`),
			}),
			[]string{
				`"text","role":"user","content":"go","payload":{},"metadata":{` + who + `"ag2.msg.text"}`,
				`"text","role":"assistant","content":"Draft.","payload":{},"metadata":{` + me + `"ag2.packet"},"id":"e2"`,
				`"tool_call","role":"assistant","content":"","payload":{"tool_name":"pick","parameters":{"reason":"billing","target":"Bob"},"turn":2},"metadata":{"tool_call_id":"call_e2",` + me + `"ag2.packet"},"id":"e2/call"`,
				`"tool_result","role":"user","content":"Handed off to Bob.","payload":{"success":true,"tool_name":"pick"},"metadata":{"tool_call_id":"call_e2",` + me + `"ag2.packet"},"id":"e2/result"`,
			},
		},
		"a static handoff without words": {
			flow("me", event("me", envelope.TypePacket, `{"routing":{"kind":"handoff","tool":"pick"},"body":""}`)),
			[]string{
				`"tool_call","role":"assistant","content":"","payload":{"tool_name":"pick","parameters":{},"turn":1},"metadata":{"tool_call_id":"",` + me + `"ag2.packet"}`,
				`"tool_result","role":"user","content":"Handed off.","payload":{"success":true,"tool_name":"pick"},"metadata":{"tool_call_id":"",` + me + `"ag2.packet"}`,
			},
		},
		"handoffs of others, and without a tool, are text": {
			flow("me", event("a", envelope.TypePacket, `{"routing":{"kind":"handoff","tool":"pick","reason":"billing","target":"z"},"body":"Draft."}`),
				event("me", envelope.TypePacket, `{"routing":{"kind":"handoff","target":"z"},"body":"Yours."}`)),
			[]string{
				`"text","role":"user","content":"[Handed off via pick] billing\nDraft.","payload":{},"metadata":{"handoff":{"tool":"pick","reason":"billing","target":"z"},` + who + `"ag2.packet"}`,
				`"text","role":"assistant","content":"[Handed off via ]\nYours.","payload":{},"metadata":{"handoff":{"target":"z"},` + me + `"ag2.packet"}`,
			},
		},
		"the end": {
			flow("me", event("me", envelope.TypePacket, `{"routing":{"kind":"finish","tool":"done","reason":"ok","summary":"All well."},"body":"Bye."}`),
				event("me", envelope.TypePacket, `{"routing":{"kind":"finish","summary":"All well."}}`),
				event("a", envelope.TypePacket, `{"routing":{"kind":"finish","reason":"ok"}}`)),
			[]string{
				`"final_result","role":"assistant","content":"Bye.","payload":{"tool":"done","reason":"ok","summary":"All well."},"metadata":{` + me + `"ag2.packet"}`,
				`"final_result","role":"assistant","content":"All well.","payload":{"summary":"All well."},"metadata":{` + me + `"ag2.packet"}`,
				`"text","role":"user","content":"[Finished] ok","payload":{},"metadata":{"finish":{"reason":"ok"},` + who + `"ag2.packet"}`,
			},
		},
		"context": {
			flow("me", event("a", envelope.TypeContextSet, `{"set":{"n":9007199254740993,"who":{"x":"y"}},"delete":["old"]}`),
				event("a", envelope.TypeContextSet, `{"set":{},"delete":[]}`),
				&envelope.Envelope{ID: "e3", Sender: "a", Type: envelope.TypePacket, Data: []byte(`{"body":"b","context_updates":{"set":{"k":true}}}`)}),
			[]string{
				`"text","role":"system","content":"[Context] n = 9007199254740993; who = {\"x\":\"y\"}; old is deleted","payload":{},"metadata":{"context":{"set":{"n":9007199254740993,"who":{"x":"y"}},"delete":["old"]},` + who + `"ag2.context.set"}`,
				`"text","role":"user","content":"b","payload":{},"metadata":{` + who + `"ag2.packet"},"id":"e3"`,
				`"text","role":"system","content":"[Context] k = true","payload":{},"metadata":{"context":{"set":{"k":true}},` + who + `"ag2.packet"},"id":"e3/context"`,
			},
		},
		"one's own tasks are calls": {
			flow("me", event("me", envelope.TypeTaskStarted, `{"task_id":"t1","spec":{"title":"Book"}}`),
				event("me", envelope.TypeTaskProgress, `{"task_id":"t1","progress":{"pct":50}}`),
				event("me", envelope.TypeTaskCompleted, `{"task_id":"t1","result":{"berth":14}}`),
				&envelope.Envelope{Sender: "me", Task: "t2", Type: envelope.TypeTaskStarted, Data: []byte(`{}`)},
				event("me", envelope.TypeTaskFailed, `{"task_id":"t2","error":"full"}`),
				event("me", envelope.TypeTaskExpired, `{"task_id":"t3"}`),
				event("me", envelope.TypeTaskCompleted, `{"task_id":"t4","result":"fine"}`),
				event("me", envelope.TypeTaskCompleted, `{"task_id":"t5","result":null}`),
				event("me", envelope.TypeTaskStarted, `{"spec":{"description":"no id"}}`)),
			[]string{
				`"tool_call","role":"assistant","content":"","payload":{"tool_name":"task","parameters":{"title":"Book"},"turn":1},"metadata":{"tool_call_id":"t1",` + me + `"ag2.task.started"}`,
				`"text","role":"assistant","content":"[Task progress] {\"pct\":50}","payload":{},"metadata":{"task":{"task_id":"t1","event":"progress"},` + me + `"ag2.task.progress"}`,
				`"tool_result","role":"user","content":"{\"berth\":14}","payload":{"success":true,"tool_name":"task","result":{"berth":14}},"metadata":{"tool_call_id":"t1",` + me + `"ag2.task.completed"}`,
				`"tool_call","role":"assistant","content":"","payload":{"tool_name":"task","parameters":{},"turn":1},"metadata":{"tool_call_id":"t2",` + me + `"ag2.task.started"}`,
				`"tool_result","role":"user","content":"full","payload":{"success":false,"tool_name":"task","error":"full"},"metadata":{"tool_call_id":"t2",` + me + `"ag2.task.failed"}`,
				`"tool_result","role":"user","content":"The task expired.","payload":{"success":false,"tool_name":"task","error":"The task expired."},"metadata":{"tool_call_id":"t3",` + me + `"ag2.task.expired"}`,
				`"tool_result","role":"user","content":"fine","payload":{"success":true,"tool_name":"task","result":"fine"},"metadata":{"tool_call_id":"t4",` + me + `"ag2.task.completed"}`,
				`"tool_result","role":"user","content":"","payload":{"success":true,"tool_name":"task"},"metadata":{"tool_call_id":"t5",` + me + `"ag2.task.completed"}`,
				`"text","role":"assistant","content":"[Task started] no id","payload":{},"metadata":{"task":{"task_id":"","event":"started"},` + me + `"ag2.task.started"}`,
			},
		},
		"tasks of others are told": {
			flow("me", event("a", envelope.TypeTaskStarted, `{"task_id":"t1","spec":{"title":"Book"}}`),
				event("a", envelope.TypeTaskCompleted, `{"task_id":"t1","result":{"berth":14}}`),
				event("a", envelope.TypeTaskCompleted, `{"task_id":"t1","result":"done"}`),
				event("a", envelope.TypeTaskCancelRequest, `{"task_id":"t9","reason":"too late"}`),
				event("a", envelope.TypeTaskProgress, `{"task_id":"t1"}`)),
			[]string{
				`"text","role":"user","content":"[Task started] Book","payload":{},"metadata":{"task":{"task_id":"t1","event":"started"},` + who + `"ag2.task.started"}`,
				`"text","role":"user","content":"[Task completed] {\"berth\":14}","payload":{},"metadata":{"task":{"task_id":"t1","event":"completed"},` + who + `"ag2.task.completed"}`,
				`"text","role":"user","content":"[Task completed] done","payload":{},"metadata":{"task":{"task_id":"t1","event":"completed"},` + who + `"ag2.task.completed"}`,
				`"text","role":"user","content":"[Task cancel request] too late","payload":{},"metadata":{"task":{"task_id":"t9","event":"cancel request"},` + who + `"ag2.task.cancel_request"}`,
				`"text","role":"user","content":"[Task progress]","payload":{},"metadata":{"task":{"task_id":"t1","event":"progress"},` + who + `"ag2.task.progress"}`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, rows(t, view.Messages(c.in))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A channel reads as canonical messages whichever adapter governs it.
func TestEveryChannelReadsAsMessages(t *testing.T) {
	t.Parallel()
	for _, a := range adapter.All() {
		kind := a.Manifest().Type
		spec.Check(t, "seed-004#1 seed-004#16: a "+kind, func(t *spec.T) {
			t.Parallel()
			p, err := adaptertest.Open(a, adaptertest.Metadata(a, `{"graph":{"initial_speaker":"a","default_target":{"name":"round_robin"}}}`, "a", "b"))
			t.NoError(err)
			t.NoError(p.Say("a", "b"))
			render, _ := a.(channel.Renderer)
			var got []string
			for _, m := range view.Messages(view.Input{Log: p.Log, Participant: "b", Render: render}) {
				data, err := m.MarshalJSON()
				t.NoError(err)
				got = append(got, string(data))
			}
			said := func(role, who string, n int) string {
				return fmt.Sprintf(`{"schema":"agents-api.message","version":1,"type":"text","role":%q,"content":"from %s","payload":{},`+
					`"metadata":{"name":%[2]q,"sender_id":%[2]q,"event_type":"ag2.msg.text"},"id":"%032[3]d","created_at":"2026-03-09 10:15:%[4]d"}`, role, who, n, 42+n)
			}
			t.Equal(got, []string{said("user", "a", 1), said("assistant", "b", 2)})
		})
	}
}

// A participant's messages contain nothing that it may not see, whatever the
// type, and whatever else decides about visibility.
func TestMessagesShowOnlyWhatIsVisible(t *testing.T) {
	t.Parallel()
	kinds := map[string]string{
		envelope.TypeText:                `{"text":"S%d"}`,
		envelope.TypePacket:              `{"routing":{"kind":"handoff","tool":"t","reason":"S%d"},"body":"S%[1]d"}`,
		envelope.TypeContextSet:          `{"set":{"k":"S%d"}}`,
		envelope.TypeTaskStarted:         `{"task_id":"t","spec":{"title":"S%d"}}`,
		envelope.TypeTaskCompleted:       `{"task_id":"t","result":"S%d"}`,
		envelope.TypeTaskCancelled:       `{"task_id":"t","reason":"S%d"}`,
		envelope.TypeTaskProgress:        `{"task_id":"t","progress":{"p":"S%d"}}`,
		envelope.TypeTaskFailed:          `{"task_id":"t","error":"S%d"}`,
		envelope.TypeTaskExpired:         `{"task_id":"t","reason":"S%d"}`,
		envelope.TypeExpectationViolated: `{"expectation":"S%d"}`,
	}
	var types []string
	for kind := range kinds {
		types = append(types, kind)
	}
	rapid.Check(t, func(t *rapid.T) {
		var log []*envelope.Envelope
		n := rapid.IntRange(0, 12).Draw(t, "n")
		for i := range n {
			kind := rapid.SampledFrom(types).Draw(t, "kind")
			e := event(rapid.SampledFrom([]string{"a", "me", "z"}).Draw(t, "sender"), kind, fmt.Sprintf(kinds[kind], 100+i))
			switch rapid.IntRange(0, 2).Draw(t, "audience") {
			case 1:
				private(e, rapid.SampledFrom([]string{"a", "me", "z"}).Draw(t, "to"))
			case 2:
				private(e)
			}
			log = append(log, e)
		}
		var shown strings.Builder
		for _, m := range view.Messages(flow("me", log...)) {
			data, err := m.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			shown.Write(data)
		}
		for i, e := range log {
			secret := fmt.Sprintf("S%d", 100+i)
			visible := e.VisibleTo("me") && e.Type != envelope.TypeExpectationViolated
			if strings.Contains(shown.String(), secret) != visible {
				t.Fatalf("%s of %s, a %s, visible %v: %s", secret, e.Sender, e.Type, visible, shown.String())
			}
		}
		if got := view.Messages(view.Input{Log: log, Participant: "me", Visible: func(*envelope.Envelope) bool { return false }}); len(got) != 0 {
			t.Fatalf("%d are shown to who sees nothing", len(got))
		}
	})
}
