package hub_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/task"
)

func TestTaskEnds(t *testing.T) {
	t.Parallel()
	// capped returns an agent that may run two tasks at a time.
	capped := func(r *rig) *agent {
		return r.agent("alice", func(reg *hub.Registration) { reg.Rule.Limits.MaxConcurrentTasks = 2 })
	}
	observe := func(r *rig, owner *agent, id, channelID string) error {
		return r.ObserveTask(context.Background(), task.Task{ID: id, Owner: owner.id, Channel: channelID, State: task.Running}, nil, hub.MirrorOff)
	}
	holds(t, "ag2-hub#97: the cap blocks the next, and finishing one frees it", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := capped(r), r.agent("bob")
		ch := r.open("conversation", a, b)
		t.NoError(observe(r, a, "1", ch))
		t.NoError(observe(r, a, "2", ""))
		err := observe(r, a, "3", ch)
		t.ErrorContains(err, "max_concurrent_tasks")
		t.Equal(fault.CodeOf(err), fault.AccessDenied)
		t.NoError(observe(r, a, "1", ch)) // known ones are not counted again
		t.NoError(observe(r, b, "4", ch)) // nor those of others
		r.update(task.Update{ID: "2", State: task.Failed})
		t.NoError(observe(r, a, "3", ""))
		t.ErrorContains(observe(r, a, "5", ""), "max_concurrent_tasks")
		r.end(ch, "") // ends 1
		t.NoError(observe(r, a, "5", ""))
	})
	holds(t, "ag2-hub#97: 0 is unlimited", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice")
		for n := range 50 {
			t.NoError(observe(r, a, fmt.Sprint(n), ""))
		}
		list, _, err := r.Tasks(context.Background(), hub.TaskQuery{Owner: a.id, Limit: 100})
		t.NoError(err)
		t.Equal(len(list), 50)
	})
	runs(t, "of many at once exactly as many as the cap allows are taken", hub.Options{}, func(t *testing.T, r *rig) {
		a := capped(r)
		ch := r.open("conversation", a, r.agent("bob"))
		var all sync.WaitGroup
		taken := make(chan bool, 20)
		for n := range 20 {
			all.Go(func() { taken <- observe(r, a, fmt.Sprint(n), []string{"", ch}[n%2]) == nil })
		}
		all.Wait()
		close(taken)
		n := 0
		for ok := range taken {
			if ok {
				n++
			}
		}
		if n != 2 {
			t.Fatalf("%d taken, the cap is 2", n)
		}
	})
	holds(t, "ag2-hub#98: cancellation is terminal, stores the reason and the time", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice")
		t.NoError(observe(r, a, "1", ""))
		r.pass(time.Minute)
		r.update(task.Update{ID: "1", State: task.Cancelled, Error: "not needed"})
		got := r.task("1")
		t.Equal(got.State, task.Cancelled)
		t.True(got.State.Terminal(), "cancelled is an end")
		t.Equal(got.Error, "not needed")
		t.Equal(got.CompletedAt, time.Now().UTC())
		r.pass(time.Minute)
		r.update(task.Update{ID: "1", State: task.Completed, Result: []byte(`1`), Error: "after all"})
		t.Equal(r.task("1"), got)
	})
	for _, where := range []string{"in a channel", "without one"} {
		holds(t, "ag2-hub#102: a terminal update fires the task hook once, "+where, hub.Options{}, func(t *spec.T, r *rig) {
			a := r.agent("alice")
			ch := ""
			if where == "in a channel" {
				ch = r.open("conversation", a, r.agent("bob"))
			}
			begun := time.Now().UTC()
			r.observe(task.Task{ID: "1", Owner: a.id, Channel: ch, State: task.Running, StartedAt: begun, Spec: task.Spec{Capability: "ocr"}})
			r.update(task.Update{ID: "1", Progress: []byte(`{"n":1}`)})
			r.pass(time.Minute)
			t.Equal(len(r.ear.tasks), 0)
			for range 3 {
				r.update(task.Update{ID: "1", State: task.Failed, Error: "boom"})
				r.observe(task.Task{ID: "1", Owner: a.id, State: task.Completed})
			}
			r.settle()
			t.Equal(r.ear.tasks, []hub.TaskEvent{{
				Task: "1", Kind: "failed", Owner: a.id, Channel: ch, Reason: "boom", Capability: "ocr", Outcome: "failed",
				StartedAt: begun, At: time.Now().UTC(),
			}})
			t.Equal(r.audit("task_terminated"), []map[string]any{{
				"kind": "task_terminated", "task_id": "1", "owner_id": a.id, "channel_id": orNull(ch), "outcome": "failed",
				"capability": "ocr", "reason": "boom",
			}})
		})
	}
	inAndOut(t, "time that ran out ends it", hub.Options{}, func(t *testing.T, r *rig, a *agent, tk task.Task) {
		tk.ExpiresAt = time.Now().Add(time.Minute)
		r.observe(tk)
		r.observe(task.Task{ID: "t1", Owner: a.id, ExpiresAt: time.Now().Add(2 * time.Minute)})
		r.restart()
		r.pass(90 * time.Second)
		if got := r.task("t1"); got.State != task.Running {
			t.Fatalf("got %v", got.State)
		}
		r.pass(time.Minute)
		got := r.task("t1")
		if got.State != task.Expired || got.Error != "ttl_expired" || got.CompletedAt.IsZero() {
			t.Fatalf("got %s", taskText(got))
		}
		r.pass(10 * time.Minute)
		if len(r.ear.tasks) != 1 || r.ear.tasks[0].Reason != "ttl_expired" || r.entries("task") != 0 {
			t.Fatalf("told %+v, %d entries", r.ear.tasks, r.entries("task"))
		}
	})
	inAndOut(t, "an end in time takes the deadline away", hub.Options{}, func(t *testing.T, r *rig, a *agent, tk task.Task) {
		tk.ExpiresAt = time.Now().Add(time.Minute)
		r.observe(tk)
		r.update(task.Update{ID: "t1", State: task.Completed})
		if n := r.entries("task"); n != 0 {
			t.Fatalf("%d entries", n)
		}
	})
	for name, end := range map[string]func(r *rig, ch string){
		"closing":  func(r *rig, ch string) { r.end(ch, "done") },
		"expiring": func(r *rig, _ string) { r.pass(3 * time.Hour) },
	} {
		holds(t, "ag2-hub#95: tasks under a channel "+name+" become expired, audited before it", hub.Options{ExpectationSweep: -1}, func(t *spec.T, r *rig) {
			a, b := r.agent("alice"), r.agent("bob")
			ch := r.open("conversation", a, b)
			r.observe(task.Task{ID: "1", Owner: a.id, Channel: ch, State: task.Running, Spec: task.Spec{Capability: "ocr"}})
			r.observe(task.Task{ID: "2", Owner: b.id, Channel: ch})
			r.observe(task.Task{ID: "3", Owner: b.id, Channel: ch})
			r.update(task.Update{ID: "3", State: task.Completed})
			r.observe(task.Task{ID: "4", Owner: b.id})
			r.restart()
			r.ear.clear()
			end(r, ch)
			m := r.channel(ch)
			for _, id := range []string{"1", "2"} {
				got := r.task(id)
				t.Equal(got.State, task.Expired)
				t.Equal(got.Error, "channel_closed")
				t.Equal(got.CompletedAt, m.ClosedAt)
			}
			t.Equal(r.task("3").State, task.Completed)
			t.Equal(r.task("4").State, task.Created)
			ended := map[string]any{"kind": "task_terminated", "task_id": "1", "owner_id": a.id, "channel_id": ch, "outcome": "expired", "capability": "ocr", "reason": "channel_closed"}
			other := map[string]any{"kind": "task_terminated", "task_id": "2", "owner_id": b.id, "channel_id": ch, "outcome": "expired", "capability": nil, "reason": "channel_closed"}
			records := r.audit("task_terminated", "channel_closed", "channel_expired")
			t.Equal(records[1:], []map[string]any{ended, other, {"kind": "channel_" + m.State.String(), "channel_id": ch, "reason": m.CloseReason}})
			t.Equal(r.ear.heard(), []string{"task expired", "task expired", "channel " + m.State.String()})
		})
	}
	runs(t, "a channel with as many tasks as it may have can be closed", hub.Options{Limits: hub.Limits{OpenTasksOwner: 440}}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		n := 0
		for ; ; n++ {
			tk := task.Task{ID: fmt.Sprint(n), Owner: a.id, Channel: ch, Spec: task.Spec{Payload: fmt.Appendf(nil, `{"x":%q}`, strings.Repeat("y", 20_000))}}
			err := r.ObserveTask(context.Background(), tk, nil, hub.MirrorOff)
			if fault.CodeOf(err) == fault.TooLarge {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if n != 256 {
			t.Fatalf("%d tasks were taken", n)
		}
		if m := r.end(ch, ""); m.State != channel.Closed {
			t.Fatalf("it is %v", m.State)
		}
		if got := len(r.audit("task_terminated")); got != 256 {
			t.Fatalf("%d ends are audited", got)
		}
	})
	runs(t, "a dormant channel's tasks end with it", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.observe(task.Task{ID: "1", Owner: a.id, Channel: ch})
		r.restart(func(o *hub.Options) { o.Adapters = []channel.Adapter{} })
		r.end(ch, "")
		if got := r.task("1"); got.State != task.Expired {
			t.Fatalf("got %v", got.State)
		}
	})
	holds(t, "ag2-hub#47: the capability of a task survives a restart", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice")
		r.observe(task.Task{ID: "1", Owner: a.id, Spec: task.Spec{Title: "t", Capability: "ocr"}})
		r.restart()
		t.Equal(r.task("1").Spec, task.Spec{Title: "t", Capability: "ocr"})
	})
	runs(t, "what was not stored never happened", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.observe(task.Task{ID: "1", Owner: a.id, Channel: ch})
		r.engine.Faults().FailWrite()
		if err := r.UpdateTask(context.Background(), task.Update{ID: "1", State: task.Failed}, nil, hub.MirrorOff); fault.CodeOf(err) != fault.Unavailable {
			t.Fatalf("got %v", err)
		}
		r.update(task.Update{ID: "1", State: task.Completed})
		if got := r.task("1"); got.State != task.Completed || len(r.ear.tasks) != 1 {
			t.Fatalf("got %v, told %v", got.State, r.ear.tasks)
		}
	})
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
