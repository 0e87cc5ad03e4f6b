package chat_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/message/chat"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/message/value/valuetest"
)

type input = map[string]any

func codeOf(err error) string {
	var refusal *chat.Error
	if !errors.As(err, &refusal) {
		return fmt.Sprint(err)
	}
	return strings.TrimPrefix(refusal.Code, "agents_chat_")
}

func now() time.Time { return time.Date(2031, 3, 9, 17, 20, 0, 0, time.UTC) }

var anna = transcript.Principal{ActingUserID: 7}

// harness is a dispatcher whose runner answers as told and counts.
type harness struct {
	chat.Dispatcher
	store  *transcript.Memory
	runs   atomic.Int32
	claims *chat.Runs
	turn   chat.Turn
}

func newHarness(answer func(turn chat.Turn) (any, error)) *harness {
	h := &harness{store: transcript.NewMemory(now, 0), claims: chat.NewRuns(now, 0)}
	h.Dispatcher = chat.Dispatcher{
		Runs: h.claims, Store: h.store,
		Runners: []chat.Runner{
			func(_ context.Context, turn chat.Turn) (any, error) {
				h.runs.Add(1)
				h.turn = turn
				return answer(turn)
			},
			func(context.Context, chat.Turn) (any, error) { panic("the second runner is asked") },
		},
	}
	return h
}

// echo answers with the conversation and one more row.
func echo(turn chat.Turn) (any, error) {
	messages := []any{}
	for _, e := range turn.Messages {
		messages = append(messages, e)
	}
	return input{"messages": append(messages, input{"role": "assistant", "content": "answer"})}, nil
}

// begin has a first turn in a new session, and returns its id.
func (h *harness) begin(t testing.TB) string {
	t.Helper()
	out, err := h.chat(t, input{"agent": "a", "message": "one"})
	if err != nil {
		t.Fatal(err)
	}
	return value.Text(out.At("session_id"))
}

func (h *harness) chat(t testing.TB, in input) (*value.Map, error) {
	t.Helper()
	return h.Chat(t.Context(), anna, in)
}

func asked(turn chat.Turn) []string {
	list := []string{}
	for _, e := range turn.Messages {
		list = append(list, e.Role+"/"+string(e.Type)+": "+value.Text(e.Content))
	}
	return list
}

func TestStatements(t *testing.T) {
	t.Parallel()
	spec.Check(t, "agent-message#91: a replayed run_id is told that it has started", func(t *spec.T) {
		h := newHarness(echo)
		first, err := h.chat(t, input{"agent": "a", "message": "hi", "run_id": "run_1"})
		t.NoError(err)
		session := value.Text(first.At("session_id"))
		before := len(h.store.Rows(session))
		_, err = h.chat(t, input{"agent": "a", "message": "hi", "run_id": "run_1"})
		t.ErrorContains(err, "agents_chat_run_already_started: ")
		_, err = h.chat(t, input{"agent": "a", "message": "hi", "run_id": " run_1 ", "session_id": session})
		t.Equal(codeOf(err), "run_already_started")
		t.Equal(h.runs.Load(), int32(1))
		t.Equal(len(h.store.Rows(session)), before)
		list, err := h.store.List(t.Context(), transcript.Scope{Type: "site", ID: "default"}, transcript.User(7), transcript.Query{})
		t.NoError(err)
		t.Equal(len(list), 1)
	})
	spec.Check(t, "agent-message#91: also while it runs, for all but one", func(t *spec.T) {
		h := newHarness(echo)
		h.Store = nil
		var started, refused atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				_, err := h.Chat(context.Background(), anna, input{"agent": "a", "message": "hi", "run_id": "run_1", "session_id": "s"})
				if err == nil {
					started.Add(1)
				} else if codeOf(err) == "run_already_started" {
					refused.Add(1)
				}
			})
		}
		wg.Wait()
		t.Equal(started.Load(), int32(1))
		t.Equal(refused.Load(), int32(7))
		t.Equal(h.runs.Load(), int32(1))
	})
	spec.Check(t, "agent-message#91: also if it failed", func(t *spec.T) {
		h := newHarness(func(chat.Turn) (any, error) { return nil, errors.New("no model") })
		in := input{"agent": "a", "message": "hi", "run_id": "run_1"}
		_, err := h.chat(t, in)
		t.NoError(err)
		_, err = h.chat(t, in)
		t.Equal(codeOf(err), "run_already_started")
		t.Equal(h.runs.Load(), int32(1))
	})
	for name, store := range map[string]transcript.Store{"no session has": transcript.NewMemory(now, 0), "the caller chose": nil} {
		spec.Check(t, "agent-message#91: also under a session id that "+name, func(t *spec.T) {
			h := newHarness(echo)
			h.Store = store
			in := input{"agent": "a", "message": "hi", "run_id": "run_1", "session_id": "s"}
			_, err := h.chat(t, in)
			t.NoError(err)
			_, err = h.chat(t, in)
			t.Equal(codeOf(err), "run_already_started")
			t.Equal(h.runs.Load(), int32(1))
		})
	}
	for name, in := range map[string]input{
		"another session": {"agent": "a", "message": "hi", "run_id": "run_1", "session_id": "other"},
	} {
		spec.Check(t, "agent-message#91: "+name+" is forbidden", func(t *spec.T) {
			h := newHarness(echo)
			_, err := h.chat(t, input{"agent": "a", "message": "hi", "run_id": "run_1"})
			t.NoError(err)
			_, err = h.chat(t, in)
			t.Equal(codeOf(err), "run_owner_forbidden")
			t.Equal(h.runs.Load(), int32(1))
		})
	}
	spec.Check(t, "agent-message#91: another owner is forbidden", func(t *spec.T) {
		h := newHarness(echo)
		_, err := h.chat(t, input{"agent": "a", "message": "hi", "run_id": "run_1"})
		t.NoError(err)
		_, err = h.Chat(t.Context(), transcript.Principal{ActingUserID: 8}, input{"agent": "a", "message": "hi", "run_id": "run_1"})
		t.Equal(codeOf(err), "run_owner_forbidden")
		t.Equal(h.runs.Load(), int32(1))
	})

	spec.Check(t, "agent-message#90: in a chat", func(t *spec.T) {
		h := newHarness(echo)
		h.Store = nil
		_, err := h.chat(t, input{
			"agent": "\u00a0a ", "message": " \u00a0 ", "run_id": "\u00a0r", "session_id": "\u00a0s",
			"history": []any{input{"role": "user", "content": "\u00a0"}, input{"role": "user", "content": " "}},
		})
		t.NoError(err)
		t.Equal([]string{h.turn.Agent, h.turn.RunID, h.turn.SessionID}, []string{"\u00a0a", "\u00a0r", "\u00a0s"})
		t.Equal(asked(h.turn), []string{"user/text: \u00a0", "user/text: \u00a0"})
		for _, owner := range []input{{"type": "user\u00a0", "key": "7"}, {"type": "user", "key": "7\u00a0"}} {
			_, err = h.chat(t, input{"agent": "a", "message": "hi", "session_owner": owner})
			t.Equal(codeOf(err), "run_owner_forbidden")
		}
	})

	spec.Check(t, "seed-004#2: a chat keeps envelopes only", func(t *spec.T) {
		h := newHarness(echo)
		out, err := h.chat(t, input{"agent": "a", "message": "hi"})
		t.NoError(err)
		rows := []string{}
		for _, row := range h.store.Rows(value.Text(out.At("session_id"))) {
			rows = append(rows, string(row))
		}
		t.Equal(rows, []string{
			`{"schema":"agents-api.message","version":1,"type":"text","role":"user","content":"hi","payload":{},"metadata":{}}`,
			`{"schema":"agents-api.message","version":1,"type":"text","role":"assistant","content":"answer","payload":{},"metadata":{}}`,
		})
	})
	spec.Check(t, "seed-004#2: a runner is given envelopes", func(t *spec.T) {
		h := newHarness(echo)
		_, err := h.chat(t, input{"agent": "a", "message": "hi", "input_messages": []any{
			input{"metadata": input{"type": "tool_call", "tool_name": "t"}}, input{"metadata": input{"type": "tool_result", "tool_name": "t"}},
		}})
		t.NoError(err)
		t.Equal(asked(h.turn), []string{"user/text: hi", "assistant/tool_call: ", "tool/tool_result: "})
		t.Equal(h.turn.Messages[1].ToolName(), "t")
	})
	spec.Check(t, "seed-004#3: a projection returned by a runner is not stored as such", func(t *spec.T) {
		h := newHarness(func(chat.Turn) (any, error) {
			return input{"messages": []any{input{"role": "assistant", "content": "x", "metadata": input{"type": "final_result", "status": "ok"}}}}, nil
		})
		out, err := h.chat(t, input{"agent": "a", "message": "hi"})
		t.NoError(err)
		t.Equal(string(h.store.Rows(value.Text(out.At("session_id")))[0]),
			`{"schema":"agents-api.message","version":1,"type":"final_result","role":"assistant","content":"x","payload":{},"metadata":{"status":"ok","type":"final_result"}}`)
	})
	spec.Check(t, "seed-004#48: plugged into a chat", func(t *spec.T) {
		h := newHarness(func(turn chat.Turn) (any, error) {
			return input{"messages": []any{turn.Messages[0], input{"role": "assistant", "content": "row"}}}, nil
		})
		out, err := h.chat(t, input{"agent": "a", "message": "hi"})
		t.NoError(err)
		t.Equal(valuetest.Write(out.At("messages")), `[{"role":"user","content":"hi"},{"role":"assistant","content":"row"}]`)
	})
	spec.Check(t, "seed-004#50: in a chat", func(t *spec.T) {
		h := newHarness(func(chat.Turn) (any, error) { return input{"messages": []any{input{}, input{"role": ""}}}, nil })
		_, err := h.chat(t, input{"agent": "a", "message": "hi"})
		t.Equal(err.Error(), "agents_chat_invalid_result: invalid_agent_conversation_result: messages[1] invalid_ai_message_envelope: role must be a non-empty string")
	})
}

func TestOutput(t *testing.T) {
	t.Parallel()
	outcome := `{"schema":"agents-api.run-outcome","version":1,"status":"runtime_tool_pending","completed":false,"stop_reason":"runtime_tool_pending","retryable":false}`
	h := newHarness(func(turn chat.Turn) (any, error) {
		return input{
			"messages": []any{
				turn.Messages[0],
				input{"content": "text"},
				input{"content": []any{"blocks"}},
				input{"content": "call", "metadata": input{"type": "tool_call"}},
				input{"content": "result", "metadata": input{"type": "tool_result"}},
				input{"role": "narrator", "content": "aside"},
			},
			"status": "runtime_tool_pending", "completed": false, "turn_count": 2, "usage": input{"total_tokens": 9}, "runtime_tool_pending": input{"request_id": "q"},
			"structured_output": nil, "structured_output_diagnostics": input{"d": 1},
		}, nil
	})
	out, err := h.chat(t, input{"agent": " helper ", "message": " hi ", "run_id": " run_x "})
	if err != nil {
		t.Fatal(err)
	}
	session := value.Text(out.At("session_id"))
	want := `{"session_id":"` + session + `","reply":"text","run_id":"run_x","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"text"},{"role":"narrator","content":"aside"}],` +
		`"completed":false,"status":"runtime_tool_pending","run_outcome":` + outcome + `,"runtime_tool_pending":{"request_id":"q"},"structured_output":null,` +
		`"metadata":{"agents_api":{"status":"runtime_tool_pending","turn_count":2,"usage":{"total_tokens":9},"run_outcome":` + outcome + `,"tool_observability":{"version":1,"calls":[]},"structured_output":{"d":1}}}}`
	if got := valuetest.Write(out); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if h.turn.Agent != "helper" || h.turn.SessionID != session || h.turn.RunID != "run_x" || h.turn.Principal != anna || h.turn.Input.At("run_id") != " run_x " {
		t.Errorf("the runner was told %+v", h.turn)
	}
	s, err := h.store.Get(t.Context(), session)
	if err != nil || valuetest.Write(s.Metadata) != `{"status":"processing","message_count":6,"current_turn":2}` || s.AgentSlug != "helper" || s.Owner != transcript.User(7) || s.Context != "chat" {
		t.Errorf("the session is %+v, %s, %v", s, valuetest.Write(s.Metadata), err)
	}
	run, ok := h.claims.Get("run_x")
	if want := (chat.Run{ID: "run_x", SessionID: session, Owner: transcript.User(7), Status: "runtime_tool_pending", StartedAt: "2031-03-09 17:20:00", UpdatedAt: "2031-03-09 17:20:00"}); !ok || run != want {
		t.Errorf("the run is %+v", run)
	}

	h = newHarness(func(chat.Turn) (any, error) {
		return input{"messages": []any{input{"content": "last"}}, "final_content": "final", "structured_output": []any{}, "structured_output_diagnostics": []any{}}, nil
	})
	out, err = h.chat(t, input{"agent": "a", "message": "hi"})
	if err != nil || out.At("reply") != "final" || out.At("completed") != true || out.At("status") != "completed" || out.Has("runtime_tool_pending") || valuetest.Write(out.At("structured_output")) != "[]" ||
		out.At("metadata").(*value.Map).At("agents_api").(*value.Map).Has("structured_output") {
		t.Errorf("%v %v", valuetest.Write(out), err)
	}
	if !regexp.MustCompile(`^run_[0-9a-f]{32}$`).MatchString(value.Text(out.At("run_id"))) {
		t.Errorf("the run is %v", out.At("run_id"))
	}
	s, _ = h.store.Get(t.Context(), value.Text(out.At("session_id")))
	if valuetest.Write(s.Metadata) != `{"status":"completed","message_count":1,"current_turn":0}` {
		t.Errorf("%s", valuetest.Write(s.Metadata))
	}
}

func TestConversation(t *testing.T) {
	t.Parallel()
	h := newHarness(echo)
	out, err := h.chat(t, input{"agent": "a", "message": "one", "history": []any{input{"role": "user", "content": "ignored"}}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"user/text: one"}, asked(h.turn)); diff != "" {
		t.Error(diff)
	}
	session := value.Text(out.At("session_id"))
	if out, err = h.chat(t, input{"agent": "a", "message": "two", "session_id": " " + session + " "}); err != nil || out.At("session_id") != session {
		t.Fatalf("%v %v", out, err)
	}
	if diff := cmp.Diff([]string{"user/text: one", "assistant/text: answer", "user/text: two"}, asked(h.turn)); diff != "" {
		t.Error(diff)
	}
	if out, err = h.chat(t, input{"agent": "a", "message": "x", "session_id": "unknown"}); err != nil || out.At("session_id") == "unknown" || out.At("session_id") == session {
		t.Errorf("an unknown session: %v %v", out, err)
	}
	for name, p := range map[string]transcript.Principal{"another": {ActingUserID: 8}, "nobody": {}} {
		if _, err := h.Chat(t.Context(), p, input{"agent": "a", "message": "x", "session_id": session}); codeOf(err) != "agents_conversation_session_forbidden" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.chat(t, input{"agent": "a", "message": "x", "session_id": session, "workspace": input{"workspace_type": "site", "workspace_id": "2"}}); codeOf(err) != "agents_conversation_session_forbidden" {
		t.Errorf("another workspace: %v", err)
	}
	out, err = h.chat(t, input{"agent": "a", "message": "x", "workspace": input{"workspace_type": "Net", "workspace_id": "2"}})
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := h.store.Get(t.Context(), value.Text(out.At("session_id"))); s.Scope != (transcript.Scope{Type: "net", ID: "2"}) {
		t.Errorf("the workspace is %v", s.Scope)
	}
	// A principal without an owner gets a session that is not stored.
	out, err = h.Chat(t.Context(), transcript.Principal{}, input{"agent": "a", "message": "x"})
	if err != nil || !regexp.MustCompile(`^session_[0-9a-f]{32}$`).MatchString(value.Text(out.At("session_id"))) {
		t.Errorf("%v %v", out, err)
	}

	h = newHarness(echo)
	h.Store = nil
	out, err = h.chat(t, input{"agent": "a", "message": "q", "history": []any{
		input{"role": "user", "content": " old "},
		input{"role": "assistant", "content": "reply"},
		input{"role": "system", "content": "no"},
		input{"role": "user", "content": " "},
		input{"role": "user", "content": []any{"no"}},
		"no",
		input{"content": "no"},
		input{"role": "assistant", "content": 5},
		input{"role": "user", "content": "more"},
	}})
	if err != nil || !strings.HasPrefix(value.Text(out.At("session_id")), "session_") {
		t.Errorf("%v %v", out, err)
	}
	if diff := cmp.Diff([]string{"user/text:  old ", "assistant/text: reply", "user/text: more", "user/text: q"}, asked(h.turn)); diff != "" {
		t.Error(diff)
	}
	if out, err = h.chat(t, input{"agent": "a", "message": "q", "session_id": "mine"}); err != nil || out.At("session_id") != "mine" {
		t.Errorf("%v %v", out, err)
	}
}
