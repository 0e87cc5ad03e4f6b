package agh_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/hub"
)

// audited lists the reasons and directions of the audit, in order.
func (r *rig) audited(dir string) []string {
	r.Helper()
	pass(time.Second) // records are written in groups
	lines, _, err := r.hub.AuditLog(context.Background(), hub.AuditQuery{Kind: "agh_message", Limit: 1000})
	r.NoError(err)
	found := []string{}
	for _, l := range lines {
		if strings.Contains(string(l.Data), `"direction":"`+dir+`"`) {
			found = append(found, string(l.Data))
		}
	}
	return found
}

func TestInbox(t *testing.T) {
	t.Parallel()
	holds(t, "agh-network#110: first in, first out; the oldest is dropped and audited", agh.Config{QueueDepth: 3}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		for i := range 5 {
			crane.say("x", obj{"id": fmt.Sprint("m-", i)})
		}
		r.Equal(tug.inbox(), []string{"m-2", "m-3", "m-4"})
		dropped := r.audited("rejected")
		r.Equal(len(dropped), 2)
		r.Contains(dropped[0], `"reason":"queue_overflow"`, `"message_id":"m-0"`, `"session_id":"`+tug.session)
		r.Equal(len(r.audited("sent")), 5)
		r.Equal(len(r.audited("received")), 5)
		r.restart()
		r.Equal(tug.inbox(), []string{"m-2", "m-3", "m-4"})
		tug.done("m-3")
		r.Equal(tug.inbox(), []string{"m-2", "m-4"})
		r.restart()
		r.Equal(tug.inbox(), []string{"m-2", "m-4"})
		r.Equal(len(list(r.get("/channels/dock/threads/thread_tide/messages"), "messages")), 5)
	})
	holds(t, "agh-network#114: the inbox is a snapshot, and a waiting reader is woken", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		began := time.Now()
		r.Equal(list(r.get("/inbox?wait=5s&session_id="+tug.session), "messages"), []obj{})
		r.Equal(time.Since(began), 5*time.Second)
		got := make(chan []string, 2)
		for _, channel := range []string{"dock", "yard"} {
			go func() {
				got <- each(list(r.get("/inbox?wait=20s&session="+tug.session+"&channel="+channel), "messages"), "id")
			}()
		}
		synctest.Wait()
		r.Equal(len(got), 1)
		r.Equal(<-got, []string{}) // it is in another channel
		id := crane.say("x", nil)
		r.Equal(<-got, []string{id})
		r.Equal(tug.inbox(), []string{id})
		r.Equal(tug.inbox(), []string{id})
		tug.done(id)
		r.ask(http.StatusNotFound, "POST", "/inbox/"+id+"/done?session_id="+tug.session, nil)
		r.Equal(tug.inbox(), []string{})
		other := crane.say("y", nil)
		tug.done("crane.s01/" + other)
		for _, bad := range []string{"?wait=61s", "?wait=x", "?wait=-1s"} {
			r.ask(http.StatusBadRequest, "GET", "/inbox"+bad+"&session_id="+tug.session, nil)
		}
		r.ask(http.StatusBadRequest, "GET", "/inbox", nil)
		r.ask(http.StatusNotFound, "GET", "/inbox?session_id=sess-1", nil)
		r.ask(http.StatusNotFound, "POST", "/inbox/x?session_id="+tug.session, nil)
		r.Equal(len(r.audited("delivered")), 2)
	})
	holds(t, "agh-network#111: one turn at a time, and others are not kept waiting", agh.Config{}, func(r *rig) {
		crane, tug, buoy := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02"), r.join("dock", "buoy", "buoy.s03")
		ctx, stop := context.WithCancel(context.Background())
		var turns []string
		var running atomic.Int32
		release := make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			ended <- r.server.Attend(ctx, "ws_harbor", tug.session, func(_ context.Context, e *wire.Envelope) error {
				if running.Add(1) > 1 {
					r.Error("two turns at once")
				}
				<-release
				turns = append(turns, e.ID)
				running.Add(-1)
				return nil
			})
		}()
		for i := range 3 {
			crane.say("x", obj{"id": fmt.Sprint("m-", i)})
			synctest.Wait()
		}
		r.Equal(tug.inbox(), []string{"m-1", "m-2"})
		r.Equal(buoy.inbox(), []string{"m-0", "m-1", "m-2"})
		r.True(r.server.Attend(ctx, "ws_harbor", tug.session, nil) != nil, "two attend one peer")
		for range 3 {
			release <- struct{}{}
		}
		synctest.Wait()
		r.Equal(turns, []string{"m-0", "m-1", "m-2"})
		stop()
		r.ErrorIs(<-ended, context.Canceled)
	})
	holds(t, "agh-network#112 agh-network#113: a failure goes back to the head; what was cancelled is not delivered", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		ctx, stop := context.WithCancel(context.Background())
		var at []time.Duration
		ids := map[string]int{}
		began := time.Now()
		ended := make(chan error, 1)
		go func() {
			ended <- r.server.Attend(ctx, "ws_harbor", tug.session, func(_ context.Context, e *wire.Envelope) error {
				ids[e.ID]++
				at = append(at, time.Since(began))
				if len(at) == 8 {
					stop()
					return nil // too late
				}
				return errors.New("not now")
			})
		}()
		crane.say("x", obj{"id": "m-0"})
		crane.say("x", obj{"id": "m-1"})
		r.ErrorIs(<-ended, context.Canceled)
		r.Equal(ids, map[string]int{"m-0": 8})
		var waits []time.Duration
		for i := 1; i < len(at); i++ {
			waits = append(waits, at[i]-at[i-1])
		}
		ms := time.Millisecond
		r.Equal(waits, []time.Duration{250 * ms, 500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 5000 * ms, 5000 * ms})
		r.Equal(tug.inbox(), []string{"m-0", "m-1"})
		r.Equal(len(r.audited("delivered")), 0)
		r.restart()
		r.Equal(tug.inbox(), []string{"m-0", "m-1"})
	})
	runs(t, "a queue is restored over a crash, with large messages read from the log", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		large := strings.Repeat("x", 100_000)
		crane.say(large, obj{"id": "m-0", "to": "tug.s02"})
		r.Equal(tug.waiting()[0]["body"], any(obj{"text": large}))
		pass(time.Second)
		late := r.join("dock", "late", "late.s03")
		r.restart()
		r.Equal(tug.waiting()[0]["body"], any(obj{"text": large}))
		r.Equal(late.inbox(), []string{})
	})
}

// A message that arrives after the reader's key was revoked is not shown to it.
func TestAWaitingReaderWhoseKeyIsRevoked(t *testing.T) {
	t.Parallel()
	var revoked atomic.Bool
	cfg := agh.Config{Stands: func(*http.Request) bool { return !revoked.Load() }}
	runs(t, "gets nothing", cfg, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		answered := make(chan int)
		go func() { answered <- r.serve("", http.MethodGet, "/inbox?wait=20s&session_id="+tug.session, nil).Code }()
		synctest.Wait()
		revoked.Store(true)
		crane.say("x", nil)
		r.Equal(<-answered, http.StatusUnauthorized)
	})
}
