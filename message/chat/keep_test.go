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

// overtaken lets something happen just before a lock is taken.
type overtaken struct {
	transcript.Store
	first func()
}

func (o *overtaken) Acquire(ctx context.Context, id string, ttl time.Duration) (string, error) {
	if o.first != nil {
		first := o.first
		o.first = nil
		first()
	}
	return o.Store.Acquire(ctx, id, ttl)
}

// A run that ended between another's first read and its lock is not undone.
func TestTurnsThatOvertake(t *testing.T) {
	t.Parallel()
	h := newHarness(echo)
	session := h.begin(t)
	fast := h.Dispatcher
	h.Store = &overtaken{h.store, func() {
		if _, err := fast.Chat(t.Context(), anna, input{"agent": "a", "message": "two", "session_id": session}); err != nil {
			t.Error(err)
		}
	}}
	out, err := h.chat(t, input{"agent": "a", "message": "three", "session_id": session})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"user/text: one", "assistant/text: answer", "user/text: two", "assistant/text: answer", "user/text: three"}, asked(h.turn)); diff != "" {
		t.Error(diff)
	}
	if rows := h.store.Rows(session); len(rows) != 6 || value.Len(out.At("messages")) != 6 {
		t.Errorf("%d rows are kept: %q", len(rows), rows)
	}
}

// What cannot be read under the lock is not written over.
func TestReadingUnderTheLockFails(t *testing.T) {
	t.Parallel()
	h := newHarness(echo)
	session := h.begin(t)
	broken := &breaking{Store: h.store}
	h.Store = &overtaken{broken, func() { broken.broken = true }}
	if _, err := h.chat(t, input{"agent": "a", "message": "two", "session_id": session}); codeOf(err) != "store_failed" || !errors.Is(err, errDisk) {
		t.Errorf("%v", err)
	}
	if rows := h.store.Rows(session); len(rows) != 2 || h.runs.Load() != 1 {
		t.Errorf("%d rows after %d runs", len(rows), h.runs.Load())
	}
	if token, err := h.store.Acquire(t.Context(), session, 0); token == "" || err != nil {
		t.Errorf("the lock is not released: %v", err)
	}
}

type breaking struct {
	transcript.Store
	broken bool
}

func (b *breaking) Get(ctx context.Context, id string) (transcript.Session, error) {
	if b.broken {
		return transcript.Session{}, errDisk
	}
	return b.Store.Get(ctx, id)
}

func TestRowsThatCannotBeReadStay(t *testing.T) {
	t.Parallel()
	row := func(role, content string) string {
		return `{"schema":"agents-api.message","version":1,"type":"text","role":"` + role + `","content":"` + content + `","payload":{},"metadata":{}}`
	}
	const bad, worse, last = `{"role":""}`, `{"content":`, `7`
	planted := []string{bad, row("user", "a"), worse, row("assistant", "b"), last}
	say := func(contents ...string) func(chat.Turn) (any, error) {
		return func(chat.Turn) (any, error) {
			messages := []any{}
			for _, c := range contents {
				role, content, _ := strings.Cut(c, " ")
				messages = append(messages, input{"role": role, "content": content})
			}
			return input{"messages": messages}, nil
		}
	}
	for name, c := range map[string]struct {
		answer func(chat.Turn) (any, error)
		want   []string
	}{
		"the conversation goes on":     {echo, []string{bad, row("user", "a"), worse, row("assistant", "b"), last, row("user", "hi"), row("assistant", "answer")}},
		"the runner fails":             {func(chat.Turn) (any, error) { return nil, errDisk }, []string{bad, row("user", "a"), worse, row("assistant", "b"), last, row("user", "hi")}},
		"the beginning was summarized": {say("system short", "assistant b"), []string{bad, worse, last, row("system", "short"), row("assistant", "b")}},
		"the second was replaced":      {say("user a", "system short", "assistant b"), []string{bad, row("user", "a"), worse, last, row("system", "short"), row("assistant", "b")}},
		"cut short":                    {say("user a"), []string{bad, row("user", "a"), worse, last}},
		"nothing is left":              {say(), []string{bad, worse, last}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(c.answer)
			id, err := h.store.Create(t.Context(), transcript.Scope{Type: "site", ID: "default"}, transcript.User(7), transcript.Create{})
			if err != nil {
				t.Fatal(err)
			}
			rows := [][]byte{}
			for _, text := range planted {
				rows = append(rows, []byte(text))
			}
			h.store.Import(id, rows)
			if _, err := h.chat(t, input{"agent": "a", "message": "hi", "session_id": id}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"user/text: a", "assistant/text: b", "user/text: hi"}, asked(h.turn)); diff != "" {
				t.Error(diff)
			}
			kept := []string{}
			for _, row := range h.store.Rows(id) {
				kept = append(kept, string(row))
			}
			if diff := cmp.Diff(c.want, kept); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMetadataOfOthersStay(t *testing.T) {
	t.Parallel()
	h := newHarness(echo)
	id, err := h.store.Create(t.Context(), transcript.Scope{Type: "site", ID: "default"}, transcript.User(7), transcript.Create{
		Metadata: value.New().Set("shop", value.New().Set("cart", value.Int(3))).Set("status", "new"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := h.chat(t, input{"agent": "a", "message": "hi", "session_id": id}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := h.store.Get(t.Context(), id)
	if err != nil || valuetest.Write(s.Metadata) != `{"shop":{"cart":3},"status":"completed","message_count":4,"current_turn":0}` {
		t.Errorf("%s, %v", valuetest.Write(s.Metadata), err)
	}
}
