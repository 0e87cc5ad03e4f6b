package chat_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/message/chat"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/message/value/valuetest"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	call := input{"content": "", "metadata": input{"type": "tool_call", "tool_name": "t", "tool_call_id": "1"}}
	result := input{"content": "", "metadata": input{"type": "tool_result", "tool_name": "t", "tool_call_id": "1"}}
	for name, c := range map[string]struct {
		in     input
		want   string
		text   string
		status int
	}{
		"no agent":           {input{"message": "hi"}, "agent_required", "agent must name an agent", 400},
		"a blank agent":      {input{"agent": " ", "message": "hi"}, "agent_required", "agent must name an agent", 400},
		"no message":         {input{"agent": "a"}, "empty_message", "message or input_messages must contain at least one message", 400},
		"a blank message":    {input{"agent": "a", "message": " \n", "input_messages": []any{}}, "empty_message", "message or input_messages must contain at least one message", 400},
		"no text":            {input{"agent": "a", "message": 5}, "empty_message", "message or input_messages must contain at least one message", 400},
		"a bad message":      {input{"agent": "a", "input_messages": []any{input{"role": ""}}}, "invalid_input_messages", "invalid_ai_message_envelope: role must be a non-empty string", 400},
		"no list":            {input{"agent": "a", "message": "hi", "input_messages": []any{"s"}}, "invalid_input_messages", "invalid_ai_message_envelope: message must be an array", 400},
		"a text":             {input{"agent": "a", "input_messages": []any{call, result, input{"content": "x"}}}, "invalid_input_message_type", "input_messages may hold tool calls and tool results only", 400},
		"an unpaired call":   {input{"agent": "a", "input_messages": []any{call}}, "unpaired_input_messages", "every tool call in input_messages needs its result, and the reverse", 400},
		"an unpaired result": {input{"agent": "a", "input_messages": []any{result, call}}, "unpaired_input_messages", "every tool call in input_messages needs its result, and the reverse", 400},
		"invalid text":       {input{"agent": "a", "message": "\xff"}, "invalid_input_messages", "invalid_ai_message_envelope: envelope must be JSON serializable", 400},
		"half an owner":      {input{"agent": "a", "message": "hi", "session_owner": input{"type": "user"}}, "run_invalid_owner", "session_owner needs a type and a key", 400},
		"half another owner": {input{"agent": "a", "message": "hi", "session_owner": input{"key": "7"}}, "run_invalid_owner", "session_owner needs a type and a key", 400},
		"another's name":     {input{"agent": "a", "message": "hi", "session_owner": input{"type": "user", "key": "8"}}, "run_owner_forbidden", "session_owner is not the principal who asks", 403},
		"another's prefixed": {input{"agent": "a", "message": "hi", "session_owner": input{"type": "user", "key": "user:8"}}, "run_owner_forbidden", "session_owner is not the principal who asks", 403},
		"a prefix alone":     {input{"agent": "a", "message": "hi", "session_owner": input{"type": "user", "key": "user:"}}, "run_invalid_owner", "session_owner needs a type and a key", 400},
		"a prefixed token":   {input{"agent": "a", "message": "hi", "session_owner": input{"type": "token", "key": "user:7"}}, "run_owner_forbidden", "session_owner is not the principal who asks", 403},
		"his own, prefixed":  {input{"agent": "a", "message": "hi", "session_owner": input{"type": "user", "key": " user:7 "}}, "<nil>", "", 0},
		"a bad workspace":    {input{"agent": "a", "message": "hi", "workspace": input{}}, "run_invalid_workspace", "invalid_agent_workspace_scope: workspace_type must be non-empty", 400},
		"his own name":       {input{"agent": "a", "message": "hi", "session_owner": input{"type": "user", "key": " 7 "}}, "<nil>", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(echo)
			var told []string
			h.Failed = func(_ context.Context, code string, in *value.Map) {
				told = append(told, code+" "+value.Text(in.At("agent")))
			}
			_, err := h.chat(t, c.in)
			if codeOf(err) != c.want {
				t.Fatalf("got %v, want %s", err, c.want)
			}
			var refusal *chat.Error
			if !errors.As(err, &refusal) {
				if len(told) != 0 {
					t.Errorf("told %q", told)
				}
				return
			}
			if refusal.Text != c.text || refusal.Status() != c.status || h.runs.Load() != 0 {
				t.Errorf("%q %d, %d runs", refusal.Text, refusal.Status(), h.runs.Load())
			}
			if diff := cmp.Diff([]string{refusal.Code + " " + value.Text(value.Of(c.in["agent"]))}, told); diff != "" {
				t.Error(diff)
			}
			// A request that was refused did not use up its run.
			if name != "invalid text" {
				if _, used := h.claims.Get("run_1"); used {
					t.Error("the run is claimed")
				}
			}
		})
	}
	d := chat.Dispatcher{Runs: chat.NewRuns(now, 0)}
	if _, err := d.Chat(t.Context(), anna, input{"agent": "a", "message": "hi"}); codeOf(err) != "no_handler" {
		t.Errorf("no runner: %v", err)
	}
}

func TestRunnerFails(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"no model": "no model", "": "The agent run failed."} {
		h := newHarness(func(chat.Turn) (any, error) { return nil, errors.New(text) })
		out, err := h.chat(t, input{"agent": "a", "message": "hi", "run_id": "run_1"})
		if err != nil {
			t.Fatal(err)
		}
		failure := `{"type":"runner_error","message":"` + want + `"}`
		if got := valuetest.Write(out.At("run_outcome")); got != `{"schema":"agents-api.run-outcome","version":1,"status":"failed","completed":false,"stop_reason":"provider_error","retryable":true,"failure":`+failure+`,"provider_error":`+failure+`}` {
			t.Error(got)
		}
		if out.At("completed") != false || out.At("status") != "failed" || out.At("reply") != "" || valuetest.Write(out.At("messages")) != `[{"role":"user","content":"hi"}]` {
			t.Error(valuetest.Write(out))
		}
		if rows := h.store.Rows(value.Text(out.At("session_id"))); len(rows) != 1 {
			t.Errorf("the transcript is not kept: %q", rows)
		}
		if run, _ := h.claims.Get("run_1"); run.Status != "failed" {
			t.Errorf("the run is %s", run.Status)
		}
		if _, err := h.chat(t, input{"agent": "a", "message": "hi", "run_id": "run_1"}); codeOf(err) != "run_already_started" {
			t.Errorf("a replay: %v", err)
		}
	}
	for name, answer := range map[string]any{"a text": "yes", "nothing": nil, "no messages": input{}, "a bad status": input{"messages": []any{}, "status": 5}} {
		h := newHarness(func(chat.Turn) (any, error) { return answer, nil })
		_, err := h.chat(t, input{"agent": "a", "message": "hi", "run_id": "run_1"})
		if codeOf(err) != "invalid_result" || !strings.Contains(err.Error(), "invalid_agent_conversation_result") {
			t.Errorf("%s: %v", name, err)
		}
		if run, _ := h.claims.Get("run_1"); run.Status != "failed" {
			t.Errorf("%s: the run is %s", name, run.Status)
		}
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	h := newHarness(echo)
	session := h.begin(t)
	token, err := h.store.Acquire(t.Context(), session, time.Minute)
	if err != nil || token == "" {
		t.Fatalf("the lock was not released: %v", err)
	}
	before := len(h.store.Rows(session))
	out, err := h.chat(t, input{"agent": "a", "message": "two", "session_id": session, "run_id": "run_2"})
	if err != nil || out.At("status") != "transcript_lock_contention" || out.At("completed") != false || out.At("reply") != "answer" || h.runs.Load() != 1 || len(h.store.Rows(session)) != before {
		t.Errorf("%s %v after %d runs", valuetest.Write(out), err, h.runs.Load())
	}
	if valuetest.Write(out.At("messages")) != `[{"role":"user","content":"one"},{"role":"assistant","content":"answer"}]` {
		t.Errorf("%s", valuetest.Write(out.At("messages")))
	}
	if _, err := h.store.Release(t.Context(), session, token); err != nil {
		t.Fatal(err)
	}
	// Nothing was run, so the same run can be asked for again.
	if _, err = h.chat(t, input{"agent": "a", "message": "two", "session_id": session, "run_id": "run_2"}); err != nil || h.runs.Load() != 2 {
		t.Errorf("%v after %d runs", err, h.runs.Load())
	}
	locked := ""
	h = newHarness(func(turn chat.Turn) (any, error) {
		locked, _ = h.store.Acquire(context.Background(), turn.SessionID, time.Minute)
		return echo(turn)
	})
	if _, err = h.chat(t, input{"agent": "a", "message": "one"}); err != nil || locked != "" {
		t.Errorf("the session is not locked while it runs: %q %v", locked, err)
	}
}

var errDisk = errors.New("disk full")

// failing fails at one of its operations.
type failing struct {
	transcript.Store
	at string
}

func (f failing) Get(ctx context.Context, id string) (transcript.Session, error) {
	if f.at == "get" {
		return transcript.Session{}, errDisk
	}
	return f.Store.Get(ctx, id)
}

func (f failing) Create(ctx context.Context, s transcript.Scope, o transcript.Owner, c transcript.Create) (string, error) {
	if f.at == "create" {
		return "", errDisk
	}
	return f.Store.Create(ctx, s, o, c)
}

func (f failing) Update(ctx context.Context, id string, u transcript.Update) (bool, error) {
	if f.at == "update" {
		return false, errDisk
	}
	return f.Store.Update(ctx, id, u)
}

func (f failing) Acquire(ctx context.Context, id string, ttl time.Duration) (string, error) {
	if f.at == "acquire" {
		return "", errDisk
	}
	return f.Store.Acquire(ctx, id, ttl)
}

func TestStoreFails(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"get", "create", "update", "acquire"} {
		h := newHarness(echo)
		h.Store = failing{h.store, at}
		in := input{"agent": "a", "message": "hi", "run_id": "run_1"}
		if at == "get" {
			in["session_id"] = "s"
		}
		_, err := h.chat(t, in)
		var refusal *chat.Error
		if codeOf(err) != "store_failed" || !errors.Is(err, errDisk) || !errors.As(err, &refusal) || refusal.Status() != 500 {
			t.Errorf("%s: %v", at, err)
		}
		// The same may be tried again unless the runner was called.
		h.Store = h.store
		_, err = h.chat(t, in)
		run, _ := h.claims.Get("run_1")
		want := "<nil> completed"
		if at == "update" {
			want = "run_already_started failed"
		}
		if got := codeOf(err) + " " + run.Status; got != want {
			t.Errorf("%s: then it is %q, want %q", at, got, want)
		}
		if n := h.runs.Load(); n != 1 {
			t.Errorf("%s: run %d times", at, n)
		}
	}
}
