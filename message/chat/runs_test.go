package chat_test

import (
	"errors"
	"regexp"
	"slices"
	"testing"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/chat"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/message/value/valuetest"
)

func TestRuns(t *testing.T) {
	t.Parallel()
	runs := chat.NewRuns(now, 2)
	owner := transcript.User(7)
	for _, id := range []string{"a", "b"} {
		if err := runs.Claim(t.Context(), id, "", owner); err != nil {
			t.Fatal(err)
		}
	}
	if err := runs.Claim(t.Context(), "c", "", owner); codeOf(err) != "too_many_runs" {
		t.Errorf("%v", err)
	}
	_ = runs.Finish(t.Context(), "b", "completed")
	_ = runs.Finish(t.Context(), "nope", "completed")
	if err := runs.Claim(t.Context(), "c", "s", owner); err != nil {
		t.Fatal(err)
	}
	if _, ok := runs.Get("b"); ok {
		t.Error("the run that ended is still there")
	}
	if run, ok := runs.Get("a"); !ok || run.Status != "running" || run.SessionID != "" {
		t.Errorf("%+v", run)
	}
	// A run whose session is not known yet may be of any session, and a
	// request without a session matches any.
	for id, session := range map[string]string{"a": "s1", "c": ""} {
		if err := runs.Claim(t.Context(), id, session, owner); codeOf(err) != "run_already_started" {
			t.Errorf("run %s, session %q: %v", id, session, err)
		}
	}
	_ = runs.Bind(t.Context(), "a", "s1")
	for session, want := range map[string]string{"": "run_already_started", "s1": "run_already_started", "s2": "run_owner_forbidden"} {
		if err := runs.Claim(t.Context(), "a", session, owner); codeOf(err) != want {
			t.Errorf("session %q: %v", session, err)
		}
	}
	if err := runs.Claim(t.Context(), "a", "s1", transcript.User(8)); codeOf(err) != "run_owner_forbidden" {
		t.Errorf("%v", err)
	}
	_ = runs.Abandon(t.Context(), "a")
	_ = runs.Abandon(t.Context(), "a")
	if err := runs.Claim(t.Context(), "a", "s2", owner); err != nil {
		t.Errorf("an abandoned run: %v", err)
	}
	if err := runs.Claim(t.Context(), "d", "", owner); codeOf(err) != "too_many_runs" {
		t.Errorf("%v", err)
	}
}

func TestRunsForgetTheOldestThatEnded(t *testing.T) {
	t.Parallel()
	runs := chat.NewRuns(now, 3)
	claim := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			if err := runs.Claim(t.Context(), id, "", transcript.User(7)); err != nil {
				t.Fatalf("%s: %v", id, err)
			}
		}
	}
	kept := func(want ...string) {
		t.Helper()
		got := []string{}
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			if _, ok := runs.Get(id); ok {
				got = append(got, id)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("kept are %q, want %q", got, want)
		}
	}
	claim("a", "b", "c")
	_ = runs.Finish(t.Context(), "a", "completed")
	_ = runs.Finish(t.Context(), "b", "completed")
	claim("d")
	kept("b", "c", "d")
	// An abandoned claim makes room, and nothing else is forgotten.
	_ = runs.Abandon(t.Context(), "d")
	claim("e")
	kept("b", "c", "e")
	claim("a")
	kept("a", "c", "e")
	if err := runs.Claim(t.Context(), "b", "", transcript.User(7)); codeOf(err) != "too_many_runs" {
		t.Errorf("all are under way: %v", err)
	}
}

func TestOneRun(t *testing.T) {
	t.Parallel()
	runs := chat.NewRuns(now, 1)
	if err := runs.Claim(t.Context(), "a", "", transcript.Owner{}); err != nil {
		t.Fatal(err)
	}
	if err := runs.Claim(t.Context(), "b", "", transcript.Owner{}); codeOf(err) != "too_many_runs" {
		t.Errorf("%v", err)
	}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	runs := chat.NewRuns(now, 0)
	out, err := runs.Enqueue("s", "run_1", input{"agent": "a", "message": "later", "attachments": input{"x": 1}, "client_context": input{"source": "rest"}})
	if err != nil {
		t.Fatal(err)
	}
	id := value.Text(out.At("queued_message_id"))
	if !regexp.MustCompile(`^queued_[0-9a-f]{32}$`).MatchString(id) {
		t.Errorf("the id is %s", id)
	}
	if got, want := valuetest.Write(out), `{"run_id":"run_1","session_id":"s","status":"queued","queued_message_id":"`+id+`","position":1}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	out, _ = runs.Enqueue("s", "run_1", nil)
	if valuetest.Write(out.At("position")) != "2" {
		t.Error(valuetest.Write(out))
	}
	if out, _ = runs.Enqueue("t", "run_2", nil); valuetest.Write(out.At("position")) != "1" {
		t.Error(valuetest.Write(out))
	}
	if got, want := valuetest.Write(runs.Dequeue("s")), `{"queued_message_id":"`+id+`","session_id":"s","run_id":"run_1","agent":"a","message":"later","attachments":[1],"client_context":{"source":"rest"},"created_at":"2031-03-09 17:20:00"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if second := runs.Dequeue("s"); second == nil || valuetest.Write(second.At("attachments")) != "[]" || valuetest.Write(second.At("client_context")) != "{}" {
		t.Error(valuetest.Write(second))
	}
	if runs.Dequeue("s") != nil || runs.Dequeue("t") == nil || runs.Dequeue("t") != nil {
		t.Error("a queue gives what it does not hold")
	}
	for range chat.DefaultQueueLimit {
		if _, err := runs.Enqueue("s", "r", nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := runs.Enqueue("s", "r", nil); codeOf(err) != "too_many_queued_messages" {
		t.Errorf("%v", err)
	}
	if _, err := runs.Enqueue("t", "r", nil); err != nil {
		t.Errorf("of another session: %v", err)
	}
	few := chat.NewRuns(now, 2)
	for _, s := range []string{"a", "b"} {
		if _, err := few.Enqueue(s, "r", nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := few.Enqueue("c", "r", nil); codeOf(err) != "too_many_queued_messages" {
		t.Errorf("%v", err)
	}
	few.Dequeue("a")
	if _, err := few.Enqueue("c", "r", nil); err != nil {
		t.Errorf("after one was taken: %v", err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		"agents_chat_run_already_started": 409, "agents_chat_run_owner_forbidden": 403, "agents_conversation_session_forbidden": 403, "agents_chat_too_many_runs": 429, "agents_chat_too_many_queued_messages": 429,
		"agents_chat_no_handler": 500, "agents_chat_invalid_result": 500, "agents_chat_store_failed": 500, "agents_chat_empty_message": 400, "agents_chat_unpaired_input_messages": 400,
	} {
		if got := (&chat.Error{Code: code}).Status(); got != want {
			t.Errorf("%s: %d", code, got)
		}
	}
	a := &chat.Error{Code: "a", Text: "x"}
	if a.Error() != "a: x" || !errors.Is(a, &chat.Error{Code: "a"}) || errors.Is(a, &chat.Error{Code: "b"}) || errors.Is(a, message.ErrRole) {
		t.Error("errors are compared by code")
	}
}
