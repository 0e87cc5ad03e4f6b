package agh_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/journal/mem"
)

// crash ends everything as a power loss would, and opens it again on what was
// durable.
func (r *rig) crash() {
	r.Helper()
	r.engine.(*mem.Engine).Faults().Crash()
	_ = r.server.Drain(context.Background())
	_ = r.server.Close() // what it could no longer write is lost
	r.hub.Close()
	_ = r.engine.Close()
	r.start()
	synctest.Wait()
}

// hold keeps everything from becoming durable until the crash.
func (r *rig) hold() { r.engine.(*mem.Engine).Faults().HoldSync() }

// later sends a request that does not end soon.
func (r *rig) later(method, path string, body any) <-chan *httptest.ResponseRecorder {
	answer := make(chan *httptest.ResponseRecorder, 1)
	go func() { answer <- r.serve("operator", method, path, body) }()
	synctest.Wait()
	return answer
}

func saying(h *host, members obj) obj {
	body := obj{"session_id": h.session, "channel": h.channel, "kind": "say", "surface": "thread", "thread_id": "thread_tide", "body": obj{"text": "hello"}}
	for k, v := range members {
		body[k] = v
	}
	return body
}

// What is lost, kept and repeated when the process ends between receiving, storing,
// delivering, answering and publishing.
func TestCrashes(t *testing.T) {
	t.Parallel()
	runTrust(t, "received, and not yet durable: nobody was told, and the sender's copy is the first", func(r *rig, a *air, crane, tug *host, f *far) {
		r.hold()
		id := f.send(obj{"work_id": "work_1"})
		r.Equal(tug.inbox(), []string{})
		r.crash()
		r.Equal(tug.inbox(), []string{})
		r.ask(http.StatusNotFound, "GET", "/work/work_1", nil)
		f.send(obj{"id": id, "work_id": "work_1"})
		r.Equal(tug.inbox(), []string{id})
		r.Equal(len(a.published("receipt")), 0)
	})
	runTrust(t, "durable: it waits after the crash, and its copy is a duplicate", func(r *rig, a *air, crane, tug *host, f *far) {
		id := f.send(obj{"work_id": "work_1"})
		second := f.send(obj{"to": nil})
		r.crash() // before the peer's position was written
		r.Equal(tug.inbox(), []string{id, second})
		r.Equal(r.work("work_1"), "submitted")
		f.send(obj{"id": id, "work_id": "work_1"})
		r.Equal(tug.inbox(), []string{id, second})
		r.Equal(receiptOf(a.published("receipt")[0])[:2], []any{"duplicate", "duplicate"})
	})
	runTrust(t, "done, and not yet written so: it is shown again, and what was written is not", func(r *rig, a *air, crane, tug *host, f *far) {
		first, second := f.send(nil), f.send(obj{"to": nil})
		tug.done(first)
		pass(2 * time.Second) // it is written now
		tug.done(second)
		r.crash()
		r.Equal(tug.inbox(), []string{second})
	})
	runTrust(t, "an answer that is not durable is not published, and is given to the next copy", func(r *rig, a *air, crane, tug *host, f *far) {
		f.send(obj{"work_id": "work_1"})
		r.hold()
		bad := f.send(obj{"work_id": "work_1", "body": obj{"text": ""}})
		r.Equal(len(a.published("receipt")), 0)
		r.crash()
		r.Equal(r.work("work_1"), "submitted")
		f.send(obj{"id": bad, "work_id": "work_1", "body": obj{"text": ""}})
		r.Equal(receiptOf(a.published("receipt")[0])[:3], []any{"rejected", "malformed", bad})
		r.Equal(r.work("work_1"), "failed")
	})
	runTrust(t, "an answer that is durable is published after the crash", func(r *rig, a *air, crane, tug *host, f *far) {
		f.send(obj{"work_id": "work_1"})
		pass(2 * time.Second) // everything so far is published, and the position is written
		r.ask(http.StatusOK, "POST", "/send", saying(crane, nil))
		pass(2 * time.Second)
		a.mu.Lock()
		handlers := a.subs
		a.mu.Unlock()
		r.True(len(handlers) > 0, "somebody listens")
		bad := f.envelope(obj{"work_id": "work_1", "body": obj{"text": ""}})
		a.cut(func() { f.arrive(bad) })
		synctest.Wait()
		r.Equal(r.work("work_1"), "failed")
		r.Equal(len(a.published("receipt")), 0)
		a.mu.Lock()
		a.down = false
		a.mu.Unlock()
		r.crash()
		pass(5 * time.Second)
		r.Equal(len(a.published("receipt")), 1)
		r.Equal(receiptOf(a.published("receipt")[0])[:3], []any{"rejected", "malformed", bad["id"]})
	})
	runTrust(t, "sent, and not yet durable: the sender has no answer, and nothing was published", func(r *rig, a *air, crane, tug *host, f *far) {
		r.hold()
		answer := r.later("POST", "/send", saying(crane, obj{"id": "m-1"}))
		r.Equal(len(answer), 0)
		r.Equal(len(a.published("say")), 0)
		r.crash()
		r.True((<-answer).Code >= 500, "it was answered as if it were durable")
		pass(5 * time.Second)
		r.Equal(len(a.published("say")), 0)
		r.Equal(r.get("/channels/dock/threads")["threads"], any([]any{}))
		r.ask(http.StatusOK, "POST", "/send", saying(crane, obj{"id": "m-1"}))
		synctest.Wait()
		r.Equal(each(a.published("say"), "id"), []string{"m-1"})
	})
	runTrust(t, "the first message of all is published after a crash too", func(r *rig, a *air, crane, tug *host, f *far) {
		a.set(true)
		r.ask(http.StatusOK, "POST", "/send", saying(crane, obj{"id": "m-0"}))
		a.mu.Lock()
		a.down = false
		a.mu.Unlock()
		r.crash()
		pass(5 * time.Second)
		r.Equal(each(a.published("say"), "id"), []string{"m-0"})
	})
	runTrust(t, "sent and durable: it is published after the crash, at most once more, in order", func(r *rig, a *air, crane, tug *host, f *far) {
		r.ask(http.StatusOK, "POST", "/send", saying(crane, obj{"id": "m-0"}))
		pass(3 * time.Second)
		a.set(true)
		for _, id := range []string{"m-1", "m-2", "m-3"} {
			r.ask(http.StatusOK, "POST", "/send", saying(crane, obj{"id": id}))
		}
		a.mu.Lock()
		a.down = false
		a.mu.Unlock()
		r.crash()
		pass(5 * time.Second)
		r.Equal(each(a.published("say"), "id"), []string{"m-0", "m-1", "m-2", "m-3"})
		r.crash() // the outbox's position was written in the meantime
		pass(5 * time.Second)
		r.Equal(each(a.published("say"), "id"), []string{"m-0", "m-1", "m-2", "m-3"})
		r.ask(http.StatusOK, "POST", "/send", saying(crane, obj{"id": "m-4"}))
		synctest.Wait()
		r.crash() // it was published, but the position was not written
		pass(5 * time.Second)
		r.Equal(each(a.published("say"), "id"), []string{"m-0", "m-1", "m-2", "m-3", "m-4", "m-4"})
	})
}

// cut runs fn while nothing that the runtime publishes reaches the broker.
func (a *air) cut(fn func()) {
	a.set(true)
	fn()
}

// arrive passes an envelope to the subscribers, although the broker accepts
// nothing.
func (f *far) arrive(e obj) {
	f.r.Helper()
	to, _ := e["to"].(string)
	token, err := wire.RouteToken(to)
	f.r.NoError(err)
	data := must(json.Marshal(e))
	f.a.mu.Lock()
	defer f.a.mu.Unlock()
	for _, s := range f.a.subs {
		if s.subject == "agh.network.v0.ws_harbor.dock.peer."+token {
			s.queue <- data
		}
	}
}
