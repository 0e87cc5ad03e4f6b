package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/room"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/adapter/transcript"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/dialect/agh/bridge"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// logRow is one row of docs/dialects.md: what an adapter writes, and an example
// of it from which the rest of the row is computed. Items says what it must be,
// so that the page cannot change unseen.
type logRow struct {
	adapter, logType, says string
	data, ext              string
	items                  string
}

const (
	ofPeer = `{"from":"a.s","ts":7,"work_id":"work_1"}`
	ofChat = `{"chat":true}`
)

var logRows = []logRow{
	{"every", envelope.TypeInviteAck, "", `{}`, "", "joined"},
	{"every", envelope.TypeInviteReject, "", `{"reason":"busy"}`, "", "left"},
	{"every", envelope.TypeRemoved, "", `{"agent_id":"b"}`, "", "left"},
	{"every", envelope.TypeExpectationViolated, "", `{"expectation":"turn_within"}`, "", "expectation"},
	{"every", envelope.TypeClosed, "", `{"reason":"done"}`, "", "end"},
	{"every", envelope.TypeInvite, "also opened and expired", `{}`, "", "other"},
	{"every", envelope.TypeTaskStarted, "", `{"task_id":"t","spec":{"title":"x"}}`, "", "work"},
	{"every", envelope.TypeTaskProgress, "", `{"task_id":"t"}`, "", "work"},
	{"every", envelope.TypeTaskCompleted, "", `{"task_id":"t"}`, "", "work"},
	{"every", envelope.TypeTaskFailed, "", `{"task_id":"t"}`, "", "work"},
	{"every", envelope.TypeTaskExpired, "", `{"task_id":"t"}`, "", "work"},
	{"every", envelope.TypeTaskCancelled, "", `{"task_id":"t"}`, "", "work"},
	{"every", envelope.TypeRequest, "in the side log", `{"title":"May I?"}`, "", "request"},
	{"every", envelope.TypeAnswer, "in the side log", `{"state":"answered"}`, "", "answer"},
	{"every", envelope.TypeRequestExpired, "in the side log", `{"state":"expired"}`, "", "answer"},
	{"every", envelope.TypeRequestCancelled, "in the side log", `{"state":"cancelled"}`, "", "answer"},
	{"every", envelope.TypeDelta, "live", `{"causation_id":"c","at":0,"text":"x"}`, "", "delta"},
	{"every", "any other type", "", `{}`, "", "other"},
	{"conversation", envelope.TypeText, "also consulting and discussion", `{"text":"x"}`, "", "message"},
	{"workflow", envelope.TypeText, "", `{"text":"x"}`, "", "message"},
	{"workflow", envelope.TypePacket, "with a body", `{"body":"x"}`, "", "message"},
	{"workflow", envelope.TypePacket, "that hands off", `{"routing":{"kind":"handoff","target":"b"}}`, "", "turn"},
	{"workflow", envelope.TypePacket, "that finishes", `{"routing":{"kind":"finish"}}`, "", "turn"},
	{"workflow", envelope.TypeContextSet, "", `{"set":{"k":1}}`, "", "other"},
	{"thread", "agh.say", "also in a direct room", `{"text":"x"}`, ofPeer, "message"},
	{"thread", "agh.capability", "", `{"capability":{"summary":"x"}}`, ofPeer, "message"},
	{"thread", "agh.receipt", "", `{"status":"accepted"}`, ofPeer, "work"},
	{"thread", "agh.trace", "", `{"state":"working"}`, ofPeer, "work"},
	{"direct", "agh.resolve", "", `{}`, "", "other"},
	{"room", "agh.join", "", `{"peer_id":"a.s","session_id":"s"}`, "", "joined"},
	{"room", "agh.leave", "", `{"peer_id":"a.s"}`, "", "left"},
	{"room", "agh.purpose", "", `{"purpose":"x"}`, "", "other"},
	{"branch", "hpd.TEXT_DELTA", "", `{"messageId":"m","text":"x"}`, "", "delta"},
	{"branch", "hpd.TEXT_MESSAGE_END", "after its pieces", `{"messageId":"m"}`, "", "message"},
	{"branch", "hpd.CONTENT_ADDED", "", `{"messageId":"m","content":{"$type":"uri","uri":"x"}}`, "", "message"},
	{"branch", "hpd.MESSAGE_TURN_ERROR", "", `{"message":"x"}`, "", "message"},
	{"branch", "hpd.TOOL_CALL_END", "after its start", `{"callId":"c"}`, "", "tool_call"},
	{"branch", "hpd.TOOL_CALL_RESULT", "", `{"callId":"c","result":{"text":"x"}}`, "", "tool_result"},
	{"branch", "hpd.TOOL_CALL_BACKGROUND_TASK_STARTED", "also its ends", `{"taskId":"t"}`, "", "work"},
	{"branch", "hpd.BRANCH_RUN_STARTED", "", `{"runtimeRunId":"r"}`, "", "turn"},
	{"branch", "hpd.BRANCH_RUN_COMPLETED", "", `{"runtimeRunId":"r"}`, "", "turn"},
	{"branch", "hpd.PLAN_UPDATED", "and every other event", `{}`, "", "other"},
	{"transcript", "transcript.appended", "", `{"rows":[{"role":"user","content":"x"}]}`, ofChat, "message"},
	{"transcript", "transcript.replaced", "and compacted", `{"rows":[{"role":"user","content":"x"}]}`, ofChat, "other, message"},
	{"transcript", "transcript.delta", "live", `{"run_id":"r","text":"x"}`, ofChat, "delta"},
	{"transcript", "transcript.run_started", "", `{"run_id":"r"}`, ofChat, "turn"},
	{"transcript", "transcript.run_ended", "", `{"run_id":"r"}`, ofChat, "turn"},
}

// dialectColumns say what each dialect shows of an item that is not its own.
var dialectColumns = []struct {
	name   string
	own    []string // adapters whose logs it shows as they are
	writes func(i *channel.Item, kind string) []string
	// silent are kinds of which nothing is shown; elsewhere something always is.
	silent []channel.ItemKind
}{
	{"AG2", ag2Channels, func(i *channel.Item, _ string) []string {
		if shown := ag2.Written(i); shown != "" {
			return []string{shown}
		}
		return nil
	}, []channel.ItemKind{channel.ItemDelta}},
	{"HPD", []string{"branch"}, func(i *channel.Item, kind string) (types []string) {
		for _, p := range hpd.Written(i, kind, "reader", func(id string) string { return id }) {
			types = append(types, p.EventType())
		}
		return types
	}, nil},
	// AGH's peers take part in AG2's channels, and are told what is said to them.
	{"AGH", []string{"thread", "direct", "room"}, func(i *channel.Item, kind string) (types []string) {
		if !slices.Contains(ag2Channels, kind) {
			return nil
		}
		for _, told := range bridge.Written(i) {
			types = append(types, string(told))
		}
		return types
	}, channel.ItemKinds()},
}

var ag2Channels = []string{"every", "conversation", "workflow"}

func shippedAdapters() map[string]channel.Adapter {
	found := map[string]channel.Adapter{}
	for _, a := range append(adapter.All(), branch.New(branch.Options{}), thread.New(thread.Options{}), direct.New(direct.Options{}),
		room.New(room.Options{}), transcript.New(transcript.Options{})) {
		found[a.Manifest().Type] = a
	}
	found["every"] = found["conversation"]
	return found
}

var pageKnobs = map[string]string{
	"workflow":   `{"graph":{"initial_speaker":"a","default_target":{"name":"round_robin"}}}`,
	"branch":     `{"session":"s","branch":"main"}`,
	"thread":     `{"workspace_id":"ws","channel":"dock","thread_id":"thread_tide"}`,
	"direct":     `{"workspace_id":"ws","channel":"dock","direct_id":"direct_1","peers":["a.s","b.s"]}`,
	"room":       `{"workspace_id":"ws","channel":"dock"}`,
	"transcript": `{"workspace_type":"w","workspace_id":"1","owner_type":"user","owner_key":"a","context":"chat","agent":"tide"}`,
}

func pageChannel(a channel.Adapter) *channel.Metadata {
	m := adaptertest.Metadata(a, pageKnobs[a.Manifest().Type], "a", "b")
	m.Name = "session-1"
	return m
}

// envelope is the row's example, as the hub or the dialect writes it.
func (r logRow) envelope() *envelope.Envelope {
	e := adaptertest.Envelope("a", r.logType, r.data)
	e.ID, e.Seq, e.CreatedAt = strings.Repeat("0", 32), 1, adaptertest.Epoch
	if r.ext != "" {
		e.Ext = []byte(r.ext)
	}
	switch {
	case strings.HasPrefix(r.logType, "agh."):
		e.Origin = envelope.Origin{Dialect: "agh", ID: "msg_1"}
	case r.adapter == "every":
		e.Origin.Dialect = envelope.OriginHub
	}
	return e
}

// read is what the row's example says. Events that are pieces follow what they
// are pieces of.
func (r logRow) read(a channel.Adapter) []channel.Item {
	reader := channel.ReaderOf(a, pageChannel(a))
	for _, before := range map[string][][2]string{
		"hpd.TEXT_MESSAGE_END": {{"hpd.TEXT_DELTA", `{"messageId":"m","text":"x"}`}},
		"hpd.TOOL_CALL_END":    {{"hpd.TOOL_CALL_START", `{"callId":"c","name":"t"}`}},
	}[r.logType] {
		reader.Read(nil, adaptertest.Envelope("a", before[0], before[1]))
	}
	return reader.Read(nil, r.envelope())
}

// Each row of docs/dialects.md is computed from an example, and checked.
func TestDialectsPage(t *testing.T) {
	t.Parallel()
	all := shippedAdapters()
	var b strings.Builder
	b.WriteString("# What each dialect shows of the others\n\n" +
		"A log is written once, in the form of its channel's adapter, and never translated. Read\nas neutral *items* (package `channel`), each dialect shows it in its own words. This page\n" +
		"is computed from the readers and writers themselves.\n\n")
	b.WriteString("| Channel | In the log | | Item |")
	for _, c := range dialectColumns {
		b.WriteString(" " + c.name + " |")
	}
	b.WriteString("\n|---|---|---|---|" + strings.Repeat("---|", len(dialectColumns)) + "\n")
	for _, r := range logRows {
		a := all[r.adapter]
		items := r.read(a)
		kinds := make([]string, len(items))
		for i := range items {
			kinds[i] = items[i].Kind.String()
		}
		t.Run(r.adapter+" "+r.logType+" "+r.says, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(r.items, strings.Join(kinds, ", ")); diff != "" {
				t.Error(diff)
			}
		})
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |", r.adapter, r.logType, r.says, strings.Join(kinds, ", "))
		for _, c := range dialectColumns {
			cell := "as it is"
			if !slices.Contains(c.own, r.adapter) {
				var types []string
				for i := range items {
					types = append(types, c.writes(&items[i], r.adapter)...)
				}
				cell = "`" + strings.Join(slices.Compact(types), "`, `") + "`"
				if len(types) == 0 {
					cell = ""
					if slices.ContainsFunc(items, func(i channel.Item) bool { return !slices.Contains(c.silent, i.Kind) }) {
						t.Errorf("%s shows nothing of %s", c.name, r.logType)
					}
				}
			}
			b.WriteString(" " + cell + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\n## And back\n\nWhat is said in any dialect is a canonical message. `hub.Say` makes of it what the channel\nholds, under the rules of its adapter:\n\n| Channel | In the log |\n|---|---|\n")
	for _, kind := range slices.Sorted(func(yield func(string) bool) {
		for kind := range all {
			if kind != "every" && !yield(kind) {
				return
			}
		}
	}) {
		fmt.Fprintf(&b, "| %s | %s |\n", kind, saidIn(t, all[kind]))
	}
	b.WriteString("\nA task of the agent that a branch's run asks is told there as its background task:\n\n| Step | In the log |\n|---|---|\n")
	for _, state := range []string{channel.WorkSubmitted, channel.WorkWorking, channel.WorkCompleted, channel.WorkFailed, channel.WorkCanceled, channel.WorkExpired} {
		fmt.Fprintf(&b, "| %s | %s |\n", state, workedIn(t, all["branch"], state))
	}
	page(t, "dialects.md", b.String())
}

// workedIn is what a step of work becomes in a branch whose run asks its agent.
func workedIn(t *testing.T, a channel.Adapter, state string) string {
	t.Helper()
	run := &branch.Run{ID: "r", Agent: "a", Turn: "t"}
	drafts, err := a.(channel.Worker).Work(pageChannel(a), &branch.State{Branch: "main", Run: run}, "a", &channel.Item{
		Kind: channel.ItemWork, ID: "t", State: state, Envelope: &envelope.Envelope{CreatedAt: adaptertest.Epoch},
	})
	if err != nil || len(drafts) != 1 {
		t.Fatalf("%s: %v, %v", state, drafts, err)
	}
	cell := "`" + drafts[0].Envelope.Type + "`"
	if drafts[0].Where == channel.Live {
		cell += ", live"
	}
	return cell
}

// saidIn is what a message becomes in a channel.
func saidIn(t *testing.T, a channel.Adapter) string {
	t.Helper()
	speaker, ok := a.(channel.Speaker)
	if !ok {
		return "nothing is said there"
	}
	m := pageChannel(a)
	s, err := a.Initial(m)
	if err != nil {
		t.Fatal(err)
	}
	drafts, err := speaker.Say(m, s, "a", message.Envelope{
		Type: message.TypeText, Content: "x", ID: "m", CreatedAt: "2026-03-09 10:15:42", Metadata: value.New().Set("name", "a.s"),
	})
	if err != nil {
		t.Fatal(err)
	}
	types := make([]string, len(drafts))
	for i, d := range drafts {
		types[i] = "`" + d.Envelope.Type + "`"
	}
	return strings.Join(types, ", ")
}
