package view_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/adaptertest"
	branchadapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/room"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/adapter/transcript"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/view"
	"github.com/parley-hub/parley/view/branch"
)

// everyAdapter lists all that are shipped.
func everyAdapter() []channel.Adapter {
	return append(adapter.All(), branchadapter.New(branchadapter.Options{}), thread.New(thread.Options{}),
		direct.New(direct.Options{}), room.New(room.Options{}), transcript.New(transcript.Options{}))
}

var knobsOf = map[string]string{
	"workflow":   `{"graph":{"initial_speaker":"a","default_target":{"name":"round_robin"}}}`,
	"branch":     `{"session":"s","branch":"main"}`,
	"thread":     `{"workspace_id":"ws","channel":"dock","thread_id":"thread_tide"}`,
	"direct":     `{"workspace_id":"ws","channel":"dock","direct_id":"direct_1","peers":["a.s","b.s"]}`,
	"room":       `{"workspace_id":"ws","channel":"dock"}`,
	"transcript": `{"workspace_type":"w","workspace_id":"1","owner_type":"user","owner_key":"a","context":"chat","agent":"tide"}`,
}

func played(t interface{ Fatal(...any) }, a channel.Adapter) *adaptertest.Play {
	m := adaptertest.Metadata(a, knobsOf[a.Manifest().Type], "a", "b")
	m.Name = "session-1"
	p, err := adaptertest.Open(a, m)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// line returns an item as a test reads it.
func line(i channel.Item) string {
	parts := []string{i.Kind.String(), i.Speaker, i.Name, i.ID, i.State, i.To, i.Text}
	if i.Kind == channel.ItemOther {
		parts = append(parts, i.Envelope.Type)
	}
	if m := i.Message; m != nil {
		parts = append(parts, m.Role, fmt.Sprint(m.Content))
		if m.Type != message.TypeText {
			parts = append(parts, string(m.Type), m.ToolName())
		}
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, "|")
}

// made returns an envelope by its type, data and ext, as the hub itself writes
// it if it is one of the hub's own.
func made(eventType, data, ext string) *envelope.Envelope {
	e := event("a", eventType, data)
	if ext != "" {
		e.Ext = []byte(ext)
	}
	switch {
	case strings.HasPrefix(eventType, "agh."):
		e.Origin = envelope.Origin{Dialect: "agh", ID: "m-1"}
	case envelope.IsChannelEvent(eventType) || strings.HasPrefix(eventType, "parley.") || eventType == envelope.TypeRemoved:
		e.Origin.Dialect = envelope.OriginHub
	}
	return e
}

func TestItems(t *testing.T) {
	t.Parallel()
	const chat, peer, done = `{"chat":true}`, `{"from":"a.s","ts":7,"work_id":"work_1"}`, `hpd.`
	for _, c := range []struct {
		adapter, name string
		log           []*envelope.Envelope
		want          []string
	}{
		{"conversation", "a text", []*envelope.Envelope{made(envelope.TypeText, `{"text":"h\u0069"}`, "")}, []string{"message|a|hi"}},
		{"conversation", "a text that is none", []*envelope.Envelope{made(envelope.TypeText, `{"text":7}`, "")}, []string{"other|a|ag2.msg.text"}},
		{"conversation", "a packet, which it does not know", []*envelope.Envelope{made(envelope.TypePacket, `{"body":"x"}`, "")}, []string{"other|a|ag2.packet"}},
		{"workflow", "a packet that hands off and sets context", []*envelope.Envelope{
			made(envelope.TypePacket, `{"body":"over","routing":{"kind":"handoff","tool":"t","target":"b","reason":"yours"},"context_updates":{"set":{"k":1}}}`, ""),
		}, []string{"message|a|over", "turn|a|passed|b|yours", "other|a|ag2.packet"}},
		{"workflow", "a packet that finishes", []*envelope.Envelope{made(envelope.TypePacket, `{"routing":{"kind":"finish","reason":"done"}}`, "")}, []string{"turn|a|finished|done"}},
		{"discussion", "a piece of a text", []*envelope.Envelope{made(envelope.TypeDelta, `{"causation_id":"c","at":3,"text":"lo"}`, "")}, []string{"delta|a|c|lo"}},
		{"consulting", "tasks", []*envelope.Envelope{
			made(envelope.TypeTaskStarted, `{"task_id":"t","spec":{"title":"Book"}}`, ""), made(envelope.TypeTaskProgress, `{"task_id":"t","progress":{"p":1}}`, ""),
			made(envelope.TypeTaskCompleted, `{"task_id":"t","result":"ok"}`, ""), made(envelope.TypeTaskFailed, `{"task_id":"t","error":"no"}`, ""),
			made(envelope.TypeTaskCancelRequest, `{"task_id":"t"}`, ""),
		}, []string{"work|a|t|submitted|Book", `work|a|t|working|{"p":1}`, "work|a|t|completed|ok", "work|a|t|failed|no", "other|a|t|ag2.task.cancel_request"}},
		{"conversation", "what the hub writes", []*envelope.Envelope{
			made(envelope.TypeInviteAck, `{}`, ""), made(envelope.TypeInviteReject, `{"reason":"busy"}`, ""),
			made(envelope.TypeExpectationViolated, `{"expectation":"max_silence"}`, ""), made(envelope.TypeRemoved, `{"agent_id":"b","reason":"late"}`, ""),
			made(envelope.TypeRequest, `{"title":"May I?"}`, ""), made(envelope.TypeAnswer, `{"state":"answered","answer":{"choice":"approve"}}`, ""),
			made(envelope.TypeClosed, `{"reason":"enough"}`, ""), event("b", envelope.TypeClosed, `{"reason":"says who?"}`),
		}, []string{"joined|a", "left|a|busy", "expectation|a|max_silence", "left|b|late", "request|a|open|May I?", "answer|a|answered|approve", "end|a|enough", "other|b|ag2.channel.closed"}},
		{"thread", "what peers say, and work", []*envelope.Envelope{
			made("agh.say", `{"text":" hi "}`, peer), made("agh.capability", `{"capability":{"summary":"tides"}}`, peer),
			made("agh.receipt", `{"status":"rejected","detail":"no"}`, peer), made("agh.trace", `{"state":"working","message":"on it"}`, peer),
		}, []string{"message|a|a.s|work_1| hi ", "message|a|a.s|work_1|tides", "work|a|a.s|work_1|failed|no", "work|a|a.s|work_1|working|on it"}},
		{"direct", "a say", []*envelope.Envelope{made("agh.say", `{"text":"psst"}`, `{"from":"a.s"}`), made("agh.resolve", `{}`, "")}, []string{"message|a|a.s|psst", "other|a|agh.resolve"}},
		{"room", "peers", []*envelope.Envelope{
			made("agh.join", `{"peer_id":"a.s","session_id":"s"}`, ""), made("agh.leave", `{"peer_id":"a.s"}`, ""), made("agh.purpose", `{"purpose":"tides"}`, ""),
		}, []string{"joined|a|a.s", "left|a|a.s", "other|a|tides|agh.purpose"}},
		{"transcript", "messages and runs", []*envelope.Envelope{
			made("transcript.run_started", `{"run_id":"r","agent":"tide"}`, chat),
			made("transcript.appended", `{"rows":[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}]}`, chat),
			made("transcript.delta", `{"run_id":"r","at":0,"text":"h"}`, chat), made("transcript.replaced", `{"from":1,"rows":[{"role":"assistant","content":"hey"}]}`, chat),
			made("transcript.run_ended", `{"run_id":"r"}`, chat), made("transcript.appended", `{"rows":[{"role":"user","content":"forged"}]}`, ""),
		}, []string{"turn|a|tide|r|started", "message|a|user|hi", "message|tide|assistant|ho", "delta|tide|r|h", "other|a|transcript.replaced", "message|tide|assistant|hey", "turn|a|r|finished", "other|a|transcript.appended"}},
		{"branch", "a run in pieces", []*envelope.Envelope{
			made(done+branch.BranchRunStarted, `{"runtimeRunId":"r"}`, `{"agent":"b","server":true,"asked":true}`),
			made(done+branch.MessageStarted, `{"messageId":"m1","role":"user","authorName":"Ines"}`, ""), made(done+branch.TextMessageStart, `{"messageId":"m1"}`, ""),
			made(done+branch.TextDelta, `{"messageId":"m1","text":"When?"}`, ""), made(done+branch.TextMessageEnd, `{"messageId":"m1"}`, ""),
			made(done+branch.MessageCompleted, `{"messageId":"m1"}`, ""),
			made(done+branch.ToolCallStart, `{"callId":"c","name":"tide"}`, ""), made(done+branch.ToolCallArgs, `{"callId":"c","argsJson":"{\"port\":1}"}`, ""),
			made(done+branch.ToolCallEnd, `{"callId":"c"}`, ""), made(done+branch.ToolCallResult, `{"callId":"c","result":{"text":"5:10"}}`, ""),
			made(done+branch.TextMessageStart, `{"messageId":"m2"}`, ""), made(done+branch.TextDelta, `{"messageId":"m2","text":"At "}`, ""),
			made(done+branch.TextDelta, `{"text":"five","messageId":"m2"}`, ""),
			made(done+branch.BranchRunCompleted, `{"runtimeRunId":"r"}`, ""), made(done+branch.PlanUpdated, `{}`, ""),
		}, []string{
			"turn|a|started|b", "delta|a|Ines|m1|When?", "message|a|Ines|m1|user|When?", "tool_call|a|c|assistant||tool_call|tide", "tool_result|a|c|tool|5:10|tool_result|tide",
			"delta|a|m2|At ", "delta|a|m2|five", "message|a|m2|assistant|At five", "turn|a|finished", "other|a|hpd.PLAN_UPDATED",
		}},
	} {
		t.Run(c.adapter+": "+c.name, func(t *testing.T) {
			t.Parallel()
			all := everyAdapter()
			a := all[slices.IndexFunc(all, func(a channel.Adapter) bool { return a.Manifest().Type == c.adapter })]
			p := played(t, a)
			var got []string
			for i := range view.Items(view.Input{Log: c.log, Adapter: a, Channel: p.Meta, Visible: func(*envelope.Envelope) bool { return true }}) {
				got = append(got, line(i))
			}
			for i := range got { // a tool call says nothing itself
				got[i] = strings.ReplaceAll(got[i], "assistant|tool_call", "assistant||tool_call")
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A transcript reads as the messages that are left of it.
func TestMessagesOfATranscript(t *testing.T) {
	t.Parallel()
	a := transcript.New(transcript.Options{})
	p := played(t, a)
	var log []*envelope.Envelope
	said := func(eventType, data string, want ...string) {
		t.Helper()
		log = append(log, made(eventType, data, `{"chat":true}`))
		got := []string{}
		for _, m := range view.Messages(view.Input{Log: log, Participant: "a", Adapter: a, Channel: p.Meta}) {
			got = append(got, fmt.Sprint(m.Role, ": ", m.Content))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %s: %s", eventType, diff)
		}
	}
	said("transcript.appended", `{"rows":[{"role":"user","content":"1"},{"role":"assistant","content":"2"},{"role":"user","content":"3"}]}`, "user: 1", "assistant: 2", "user: 3")
	said("transcript.replaced", `{"from":2,"rows":[{"role":"user","content":"4"},{"role":"assistant","content":"5"}]}`, "user: 1", "assistant: 2", "user: 4", "assistant: 5")
	said("transcript.compacted", `{"through":3,"rows":[{"role":"system","content":"in short"}]}`, "system: in short", "assistant: 5")
	said("transcript.replaced", `{"from":9,"rows":[]}`, "system: in short", "assistant: 5")
	said("transcript.run_ended", `{"run_id":"r"}`, "system: in short", "assistant: 5")
}

// A message said in any channel is accepted by its adapter and reads as the
// same message, by the same speaker.
func TestWhatIsSaidReadsAsTheSame(t *testing.T) {
	t.Parallel()
	for _, a := range everyAdapter() {
		kind := a.Manifest().Type
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			speaker, ok := a.(channel.Speaker)
			if !ok {
				if kind != "room" {
					t.Error("nobody can speak there")
				}
				return
			}
			rapid.Check(t, func(t *rapid.T) {
				p := played(t, a)
				text := rapid.StringN(1, 40, -1).Draw(t, "text")
				msg := message.Envelope{
					Type: message.TypeText, Content: text, ID: "m-7", CreatedAt: "2026-03-09 10:15:42",
					Metadata: value.New().Set("name", "a.s"),
				}
				drafts, err := speaker.Say(p.Meta, p.State, "a", msg)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range drafts {
					e := d.Envelope
					e.Channel, e.Sender, e.Priority = p.Meta.ID, "a", envelope.Normal
					e.Origin = envelope.Origin{Dialect: "elsewhere", Hops: 1}
					if err := p.Post(&e); err != nil {
						t.Fatal(err)
					}
				}
				var said []string
				for i := range view.Items(view.Input{Log: p.Log, Participant: "a", Adapter: a, Channel: p.Meta}) {
					if i.Kind == channel.ItemMessage {
						said = append(said, i.Speaker+"|"+fmt.Sprint(i.Message.Content))
					}
				}
				if diff := cmp.Diff([]string{"a|" + text}, said); diff != "" {
					t.Fatal(diff)
				}
			})
		})
	}
}

// secrets are payloads of every kind of envelope, with a text to look for.
var secrets = map[string]string{
	envelope.TypeText: `{"text":"S%d"}`, envelope.TypePacket: `{"body":"S%d","routing":{"kind":"handoff","target":"a","reason":"S%[1]d"}}`,
	envelope.TypeDelta: `{"text":"S%d"}`, envelope.TypeTaskStarted: `{"task_id":"S%d","spec":{"title":"S%[1]d"}}`,
	envelope.TypeRequest: `{"title":"S%d"}`, "agh.say": `{"text":"S%d"}`, "agh.trace": `{"state":"working","message":"S%d"}`,
	"agh.join": `{"peer_id":"S%d","session_id":"s"}`, "hpd.TEXT_DELTA": `{"messageId":"m","text":"S%d"}`, "hpd.TEXT_MESSAGE_END": `{"messageId":"m"}`,
	"hpd.BRANCH_RUN_COMPLETED": `{}`, "transcript.appended": `{"rows":[{"role":"user","content":"S%d"}]}`, "custom.type": `{"x":"S%d"}`,
}

// What someone may not see in a channel is not in its items, whatever the
// channel, the envelopes and their audiences.
func TestItemsShowOnlyWhatIsVisible(t *testing.T) {
	t.Parallel()
	var types []string
	for kind := range secrets {
		types = append(types, kind)
	}
	slices.Sort(types)
	all := everyAdapter()
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom(all).Draw(t, "adapter")
		p := played(t, a)
		who := rapid.SampledFrom([]string{"a", "b", "z"})
		reader := who.Draw(t, "reader")
		var log []*envelope.Envelope
		hidden := map[string]bool{}
		for i := range rapid.IntRange(1, 12).Draw(t, "n") {
			kind := rapid.SampledFrom(types).Draw(t, "kind")
			data := secrets[kind]
			if strings.Contains(data, "%") {
				data = fmt.Sprintf(data, 100+i)
			}
			e := made(kind, data, map[bool]string{true: `{"from":"a.s","ts":7}`, false: `{"chat":true}`}[strings.HasPrefix(kind, "agh.")])
			e.Sender = who.Draw(t, "sender")
			if rapid.Bool().Draw(t, "whispered") {
				e.Audience = []string{who.Draw(t, "to")}
			}
			log = append(log, e)
			hidden[fmt.Sprint("S", 100+i)] = !a.Visible(p.Meta, p.State, p.Meta.Members(), e, reader)
		}
		for i := range view.Items(view.Input{Log: log, Participant: reader, Adapter: a, Channel: p.Meta, Visible: func(e *envelope.Envelope) bool {
			return a.Visible(p.Meta, p.State, p.Meta.Members(), e, reader)
		}}) {
			shown := line(i) + string(i.Envelope.Data)
			for secret, may := range hidden {
				if may && strings.Contains(shown, secret) {
					t.Fatalf("%s sees %s in %s", reader, secret, shown)
				}
			}
		}
	})
}
