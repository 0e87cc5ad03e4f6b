package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/adapter/conversation"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/task"
)

func TestTaskEvents(t *testing.T) {
	t.Parallel()
	runs(t, "are passed on untouched; an end is audited, also of an unknown task", hub.Options{}, func(t *testing.T, r *rig) {
		payload := `{"op":"observe_task","owner_id":"o","channel_id":"c","exc_type":"X","exc_message":"m"}`
		if err := r.FireTaskEvent(context.Background(), "t1", "mirror_failed", []byte(payload)); err != nil {
			t.Fatal(err)
		}
		want := hub.TaskEvent{Task: "t1", Kind: "mirror_failed", Owner: "o", Channel: "c", At: time.Now().UTC(), Payload: []byte(payload)}
		if diff := cmp.Diff([]hub.TaskEvent{want}, r.ear.tasks); diff != "" {
			t.Fatal(diff)
		}
		if got := r.audit("task_terminated"); len(got) != 0 {
			t.Fatalf("audited %v", got)
		}
		if err := r.FireTaskEvent(context.Background(), "t2", "cancelled", []byte(`{"owner_id":"o","reason":"r","capability":"ocr"}`)); err != nil {
			t.Fatal(err)
		}
		audited := []map[string]any{{
			"kind": "task_terminated", "task_id": "t2", "owner_id": "o", "channel_id": nil, "outcome": "cancelled", "capability": "ocr", "reason": "r",
		}}
		if diff := cmp.Diff(audited, r.audit("task_terminated")); diff != "" {
			t.Fatal(diff)
		}
		if err := r.FireTaskEvent(context.Background(), "t3", "x", []byte(`[]`)); fault.CodeOf(err) != fault.Invalid {
			t.Fatalf("got %v", err)
		}
	})
}

func TestCheckpoints(t *testing.T) {
	t.Parallel()
	read := func(t *spec.T, r *rig, id string) string {
		state, err := r.TaskCheckpoint(context.Background(), id, nil)
		t.NoError(err)
		return string(state)
	}
	holds(t, "ag2-hub#99: the last write wins, byte for byte, across a restart", hub.Options{}, func(t *spec.T, r *rig) {
		exact := `{ "n": 12345678901234567890, "é": "\u00e9", "a":[ ] }`
		t.NoError(r.CheckpointTask(context.Background(), "t1", []byte(`{"first":1}`), "", nil))
		t.Equal(read(t, r, "t1"), `{"first":1}`)
		t.NoError(r.CheckpointTask(context.Background(), "t1", []byte(exact), "", nil))
		t.Equal(read(t, r, "t1"), exact)
		r.crash()
		t.Equal(read(t, r, "t1"), exact)
	})
	holds(t, "ag2-hub#99: an unknown one is null", hub.Options{}, func(t *spec.T, r *rig) {
		state, err := r.TaskCheckpoint(context.Background(), "t1", nil)
		t.NoError(err)
		t.True(state == nil, "there is none")
	})
	runs(t, "the first writer of an unknown one owns it", hub.Options{}, func(t *testing.T, r *rig) {
		ctx := context.Background()
		if err := r.CheckpointTask(ctx, "t1", []byte(`{}`), "a", actsFor("a")); err != nil {
			t.Fatal(err)
		}
		if err := r.CheckpointTask(ctx, "t1", []byte(`{"b":1}`), "b", actsFor("b")); fault.CodeOf(err) != fault.AccessDenied {
			t.Fatalf("got %v", err)
		}
		_, err := r.TaskCheckpoint(ctx, "t1", actsFor("b"))
		if want := "the checkpoint of task 't1' belongs to 'a': only its owner may read it"; fault.CodeOf(err) != fault.AccessDenied || err.Error() != want {
			t.Fatalf("read: got %v, want %q", err, want)
		}
		r.restart()
		if err := r.CheckpointTask(ctx, "t1", []byte(`{"b":1}`), "b", actsFor("b")); fault.CodeOf(err) != fault.AccessDenied {
			t.Fatalf("after a restart got %v", err)
		}
		if err := r.CheckpointTask(ctx, "t1", []byte(`{"a":2}`), "a", actsFor("a")); err != nil {
			t.Fatal(err)
		}
		// Another agent cannot take the task by observing one under its id.
		steal := task.Task{ID: "t1", Owner: "b"}
		if err := r.ObserveTask(ctx, steal, actsFor("b"), hub.MirrorOff); fault.CodeOf(err) != fault.AccessDenied {
			t.Fatalf("got %v", err)
		}
		if _, err := r.Task(ctx, "t1"); fault.CodeOf(err) != fault.NotFound {
			t.Fatalf("the task was made: %v", err)
		}
		r.observe(steal) // the hub itself names the owner
		if err := r.CheckpointTask(ctx, "t1", []byte(`{"a":3}`), "a", actsFor("a")); fault.CodeOf(err) != fault.AccessDenied {
			t.Fatalf("got %v", err)
		}
		if err := r.CheckpointTask(ctx, "t1", []byte(`{"b":4}`), "b", actsFor("b")); err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{``, `[]`, `{`, `null`} {
			if err := r.CheckpointTask(ctx, "t1", []byte(bad), "a", nil); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%q: got %v", bad, err)
			}
		}
	})
}

func TestMirror(t *testing.T) {
	t.Parallel()
	// busy returns a channel in which b has received an envelope that it has not
	// acked.
	busy := func(r *rig) (ch string, a, b *agent) {
		a, b = r.agent("alice"), r.agent("bob")
		ch = r.open("conversation", a, b)
		r.say(a, ch, "work")
		r.settle()
		a.clear()
		return ch, a, b
	}
	run := func(r *rig, b *agent, ch string, mirror hub.Mirror) []string {
		r.t.Helper()
		before := len(r.log(ch))
		for _, err := range []error{
			r.ObserveTask(context.Background(), task.Task{ID: "1", Owner: b.id, Channel: ch, State: task.Running, Spec: task.Spec{Title: "t"}}, nil, mirror),
			r.UpdateTask(context.Background(), task.Update{ID: "1", Progress: []byte(`{"n":1}`)}, nil, mirror),
			r.UpdateTask(context.Background(), task.Update{ID: "1", State: task.Completed, Result: []byte(`[1]`)}, nil, mirror),
		} {
			if err != nil {
				r.t.Fatal(err)
			}
		}
		var got []string
		for _, e := range r.log(ch)[before:] {
			if e.Sender != b.id || e.Task != "1" || e.Audience != nil {
				r.t.Fatalf("got %+v", e)
			}
			got = append(got, e.Type+" "+string(e.Data))
		}
		return got
	}
	started := envelope.TypeTaskStarted + ` {"task_id":"1","spec":{"title":"t","description":"","payload":{},"capability":null}}`
	progress := envelope.TypeTaskProgress + ` {"task_id":"1","progress":{"n":1}}`
	completed := envelope.TypeTaskCompleted + ` {"task_id":"1","result":[1]}`
	for mirror, want := range map[hub.Mirror][]string{
		hub.MirrorOff: nil, hub.MirrorEnds: {started, completed}, hub.MirrorAll: {started, progress, completed},
	} {
		runs(t, fmt.Sprintf("while the owner's turn runs, level %d", mirror), hub.Options{}, func(t *testing.T, r *rig) {
			ch, a, b := busy(r)
			if got := run(r, b, ch, mirror); !slices.Equal(got, want) {
				t.Fatalf("got %q, want %q", got, want)
			}
			if got := len(a.inbox()); got != len(want) {
				t.Fatalf("the other side was told %d, want %d", got, len(want))
			}
		})
	}
	runs(t, "without a result that nobody could be told", hub.Options{}, func(t *testing.T, r *rig) {
		ch, _, b := busy(r)
		large := []byte(`"` + strings.Repeat("x", 1_040_000) + `"`)
		for _, err := range []error{
			r.ObserveTask(context.Background(), task.Task{ID: "1", Owner: b.id, Channel: ch, State: task.Running}, nil, hub.MirrorOff),
			r.UpdateTask(context.Background(), task.Update{ID: "1", State: task.Completed, Result: large}, nil, hub.MirrorAll),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		log := r.log(ch)
		last := log[len(log)-1]
		if got := last.Type + " " + string(last.Data); got != envelope.TypeTaskCompleted+` {"task_id":"1","result":null}` {
			t.Errorf("got %.200q", got)
		}
		if tk, err := r.Task(context.Background(), "1"); err != nil || len(tk.Result) != len(large) {
			t.Errorf("the task has a result of %d bytes, %v", len(tk.Result), err)
		}
	})
	runs(t, "not once the owner has acked", hub.Options{}, func(t *testing.T, r *rig) {
		ch, _, b := busy(r)
		if err := r.Ack(context.Background(), b.id, ch, b.inbox()[len(b.inbox())-1].ID); err != nil {
			t.Fatal(err)
		}
		if got := run(r, b, ch, hub.MirrorAll); len(got) != 0 {
			t.Fatalf("got %q", got)
		}
	})
	runs(t, "not of an owner who takes no part", hub.Options{TrustClients: true}, func(t *testing.T, r *rig) {
		ch, _, _ := busy(r)
		if got := run(r, r.agent("carol"), ch, hub.MirrorAll); len(got) != 0 {
			t.Fatalf("got %q", got)
		}
	})
	runs(t, "not what the adapter would not take", hub.Options{Adapters: []channel.Adapter{tasteful{}}}, func(t *testing.T, r *rig) {
		ch, _, b := busy(r)
		if got := run(r, b, ch, hub.MirrorAll); len(got) != 0 {
			t.Fatalf("got %q", got)
		}
	})
	for state, want := range map[task.State]string{
		task.Failed:    envelope.TypeTaskFailed + ` {"task_id":"1","error":"e"}`,
		task.Expired:   envelope.TypeTaskExpired + ` {"task_id":"1","reason":"e"}`,
		task.Cancelled: envelope.TypeTaskCancelled + ` {"task_id":"1","reason":"e"}`,
	} {
		runs(t, "an end as "+string(state), hub.Options{}, func(t *testing.T, r *rig) {
			ch, _, b := busy(r)
			r.observe(task.Task{ID: "1", Owner: b.id, Channel: ch, State: task.Running})
			u := task.Update{ID: "1", State: state, Error: "e"}
			if err := r.UpdateTask(context.Background(), u, nil, hub.MirrorEnds); err != nil {
				t.Fatal(err)
			}
			log := r.log(ch)
			if e := log[len(log)-1]; e.Type+" "+string(e.Data) != want {
				t.Fatalf("got %s %s", e.Type, e.Data)
			}
		})
	}
}

// tasteful is a conversation that accepts no task events.
type tasteful struct{ conversation.Adapter }

func (tasteful) ValidateSend(_ *channel.Metadata, _ channel.State, e *envelope.Envelope) error {
	if envelope.IsTask(e.Type) {
		return fault.New(fault.Protocol, "not here")
	}
	return nil
}
