package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/task"
)

var kept = task.Spec{Title: scan.Title, Description: scan.Description, Payload: scan.Payload, Capability: scan.Capability}

var scan = agent.TaskSpec{ID: "t1", Title: "scan", Description: "the receipts", Payload: []byte(`{"n":3}`), Capability: "ocr", TTL: time.Hour}

// withTask lets b run one tool call in a turn, in which work happens.
func withTask(t *spec.T, w *world, work func(ctx context.Context, turn *agent.Turn)) (*agenttestLink, string) {
	t.Helper()
	tool := &agent.Tool{Name: "work", Run: func(ctx context.Context, call *agent.Call) (any, error) {
		work(ctx, call.Turn)
		return "worked", nil
	}}
	w.run("b", does(calling(turn.Call{ID: "1", Name: "work"}), agent.Response{Text: "done"}), agent.Options{Tools: []*agent.Tool{tool}})
	_, a := w.run("a", says(), agent.Options{})
	m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
	w.say(t, a, m.ID, "go")
	return a, m.ID
}

func TestTaskMirror(t *testing.T) {
	t.Parallel()
	one := func(t *spec.T, w *world, a *agenttestLink, channelID, eventType, data string) {
		t.Helper()
		got := w.log(t, a, channelID, eventType)
		t.Equal(len(got), 1)
		t.Equal(got[0].Sender, "id-b")
		t.Equal(got[0].Task, "t1")
		t.Equal(string(got[0].Data), data)
	}
	check(t, "seed-000#46: ag2.task.started mirrors the start of a task", func(t *spec.T, w *world) {
		a, id := withTask(t, w, func(ctx context.Context, turn *agent.Turn) { turn.Begin(ctx, scan) })
		one(t, w, a, id, envelope.TypeTaskStarted,
			`{"task_id":"t1","spec":{"title":"scan","description":"the receipts","payload":{"n":3},"capability":"ocr"}}`)
		record, err := a.Task(w.ctx, "t1")
		t.NoError(err)
		now := time.Now().UTC()
		t.Equal(record, &task.Task{
			ID: "t1", Owner: "id-b", Spec: kept, State: task.Running, Channel: id,
			CreatedAt: now, StartedAt: now, ExpiresAt: now.Add(time.Hour),
		})
	})
	check(t, "seed-000#47: ag2.task.progress mirrors a progress report of a task", func(t *spec.T, w *world) {
		a, id := withTask(t, w, func(ctx context.Context, turn *agent.Turn) {
			w.must(turn.Begin(ctx, scan).Progress(ctx, map[string]any{"page": 2}))
		})
		one(t, w, a, id, envelope.TypeTaskProgress, `{"task_id":"t1","progress":{"page":2}}`)
		record, err := a.Task(w.ctx, "t1")
		t.NoError(err)
		t.Equal(string(record.Progress), `{"page":2}`)
	})
	check(t, "seed-000#48: ag2.task.completed mirrors the completion of a task", func(t *spec.T, w *world) {
		a, id := withTask(t, w, func(ctx context.Context, turn *agent.Turn) {
			run := turn.Begin(ctx, scan)
			w.must(run.Complete(ctx, []int{1, 2}))
			run.Fail(ctx, errors.New("too late")) // it ends once
		})
		one(t, w, a, id, envelope.TypeTaskCompleted, `{"task_id":"t1","result":[1,2]}`)
		t.Equal(len(w.log(t, a, id, envelope.TypeTaskFailed)), 0)
		record, err := a.Task(w.ctx, "t1")
		t.NoError(err)
		t.Equal(record.State, task.Completed)
		t.Equal(string(record.Result), `[1,2]`)
	})
	check(t, "seed-000#49: ag2.task.failed mirrors the failure of a task", func(t *spec.T, w *world) {
		a, id := withTask(t, w, func(ctx context.Context, turn *agent.Turn) { turn.Begin(ctx, scan).Fail(ctx, errors.New("smudged")) })
		one(t, w, a, id, envelope.TypeTaskFailed, `{"task_id":"t1","error":"smudged"}`)
		record, err := a.Task(w.ctx, "t1")
		t.NoError(err)
		t.Equal(record.State, task.Failed)
		t.Equal(record.Error, "smudged")
	})
	check(t, "seed-000#50: ag2.task.expired mirrors the expiry of a task", func(t *spec.T, w *world) {
		a, id := withTask(t, w, func(ctx context.Context, turn *agent.Turn) { turn.Begin(ctx, scan).Expire(ctx) })
		one(t, w, a, id, envelope.TypeTaskExpired, `{"task_id":"t1","reason":"ttl_expired"}`)
	})
	test(t, "cancelled", func(t *spec.T, w *world) {
		a, id := withTask(t, w, func(ctx context.Context, turn *agent.Turn) { turn.Begin(ctx, scan).Cancel(ctx, "not needed") })
		one(t, w, a, id, envelope.TypeTaskCancelled, `{"task_id":"t1","reason":"not needed"}`)
	})
	check(t, "seed-000#51: after the turn nothing is posted", func(t *spec.T, w *world) {
		var kept *agent.TaskRun
		a, id := withTask(t, w, func(ctx context.Context, turn *agent.Turn) { kept = turn.Begin(ctx, scan) })
		t.NoError(kept.Progress(w.ctx, map[string]any{"page": 9}))
		t.NoError(kept.Complete(w.ctx, "late"))
		t.Equal(len(w.log(t, a, id, envelope.TypeTaskProgress)), 0)
		t.Equal(len(w.log(t, a, id, envelope.TypeTaskCompleted)), 0)
		record, err := a.Task(w.ctx, "t1")
		t.NoError(err)
		t.Equal(record.State, task.Completed)
	})
	check(t, "seed-000#51: outside a turn nothing is posted", func(t *spec.T, w *world) {
		w.run("c", says(), agent.Options{})
		link := w.Join("b")
		tool := &agent.Tool{Name: "work", Run: func(ctx context.Context, call *agent.Call) (any, error) {
			return "", call.Turn.Begin(ctx, scan).Complete(ctx, nil)
		}}
		b := w.start(link, does(calling(turn.Call{Name: "work"})), agent.Options{Tools: []*agent.Tool{tool}})
		m := w.open(t, link, agent.Opening{Type: "conversation", Participants: ids("c")})
		before := len(w.log(t, link, m.ID))
		_, err := b.Ask(w.ctx, "work")
		t.NoError(err)
		t.Equal(len(w.log(t, link, m.ID)), before)
		record, err := link.Task(w.ctx, "t1")
		t.NoError(err)
		t.Equal(record.State, task.Completed)
		t.Equal(record.Channel, "")
	})
	test(t, "the end is counted once, with its latency", func(t *spec.T, w *world) {
		withTask(t, w, func(ctx context.Context, turn *agent.Turn) {
			run := turn.Begin(ctx, scan)
			<-time.After(3 * time.Second) // the bubble's own time
			w.must(run.Complete(ctx, nil))
			w.must(run.Complete(ctx, nil))
			idle := turn.Begin(ctx, agent.TaskSpec{ID: "t2", Title: "no capability"})
			idle.Fail(ctx, errors.New("x"))
		})
		w.pass(minute)
		t.Equal(w.Observations(), []agent.Observation{{Capability: "ocr", Outcome: task.Completed, Latency: 3 * time.Second, TaskID: "t1"}})
	})
	test(t, "what the hub cannot be told never breaks the turn", func(t *spec.T, w *world) {
		link := w.Join("b")
		link.Fail("ObserveTask", fault.New(fault.AccessDenied, "too many tasks"))
		link.Fail("Post "+envelope.TypeTaskStarted, errors.New("down"))
		tool := &agent.Tool{Name: "work", Run: func(ctx context.Context, call *agent.Call) (any, error) {
			return "", call.Turn.Begin(ctx, scan).Complete(ctx, nil)
		}}
		w.start(link, does(calling(turn.Call{Name: "work"}), agent.Response{Text: "done"}), agent.Options{Tools: []*agent.Tool{tool}})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		w.say(t, a, m.ID, "go")
		t.Equal(w.lines(t, a, m.ID), []string{"id-a: go", "id-b: done"})
		events := w.TaskEvents()
		t.Equal(len(events), 2)
		t.Equal(events[0].Kind, "mirror_failed")
		t.Equal(events[0].Payload, `{"op":"post_envelope","owner_id":"id-b","channel_id":"`+m.ID+`","exc_type":"internal","exc_message":"down"}`)
		t.Equal(events[1].Payload, `{"op":"observe_task","owner_id":"id-b","channel_id":"`+m.ID+`","exc_type":"access_denied","exc_message":"too many tasks"}`)
	})
	test(t, "a whole turn as a task", func(t *spec.T, w *world) {
		w.run("b", says("the answer"), agent.Options{Task: func(*agent.Turn) *agent.TaskSpec { return &scan }})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "consulting", Participants: ids("b")})
		w.say(t, a, m.ID, "go")
		t.Equal(types(w.log(t, a, m.ID))[3:], []string{
			envelope.TypeText, envelope.TypeTaskStarted, envelope.TypeTaskCompleted, envelope.TypeText, envelope.TypeClosed,
		})
		one(t, w, a, m.ID, envelope.TypeTaskCompleted, `{"task_id":"t1","result":"the answer"}`)
	})
	test(t, "a turn that takes too long expires with its task", func(t *spec.T, w *world) {
		slow := agent.ModelFunc(func(ctx context.Context, _ *agent.Prompt) (*agent.Response, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		w.run("b", slow, agent.Options{Task: func(*agent.Turn) *agent.TaskSpec { return &scan }})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "consulting", Participants: ids("b")})
		w.say(t, a, m.ID, "go")
		w.pass(time.Hour)
		one(t, w, a, m.ID, envelope.TypeTaskExpired, `{"task_id":"t1","reason":"ttl_expired"}`)
		t.Equal(len(w.Failures()), 1)
	})
	test(t, "a turn that fails fails its task", func(t *spec.T, w *world) {
		broken := agent.ModelFunc(func(context.Context, *agent.Prompt) (*agent.Response, error) { return nil, errors.New("broken") })
		w.run("b", broken, agent.Options{Task: func(*agent.Turn) *agent.TaskSpec { return &scan }})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "consulting", Participants: ids("b")})
		w.say(t, a, m.ID, "go")
		one(t, w, a, m.ID, envelope.TypeTaskFailed, `{"task_id":"t1","error":"broken"}`)
	})
	test(t, "a cancel request reaches the task", func(t *spec.T, w *world) {
		started := make(chan *agent.TaskRun, 1)
		tool := &agent.Tool{Name: "work", Run: func(ctx context.Context, call *agent.Call) (any, error) {
			run := call.Turn.Begin(ctx, scan)
			started <- run
			<-run.CancelRequested()
			run.Cancel(ctx, "asked to")
			return "stopped", nil
		}}
		w.run("b", does(calling(turn.Call{Name: "work"}), agent.Response{Text: "stopped"}), agent.Options{Tools: []*agent.Tool{tool}})
		// The request comes through the channel whose turn runs the task, and
		// must not wait behind that turn.
		a := w.Join("a")
		w.start(a, says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		w.say(t, a, m.ID, "go")
		run := <-started
		t.Equal(use(t, w, a, "tasks", `{"action":"cancel","task_id":"t1"}`), "cancel_request posted to id-b for task t1")
		w.settle()
		t.Equal(run.State(), task.Cancelled)
		t.Equal(w.lines(t, a, m.ID), []string{"id-a: go", "id-b: stopped"})
	})
	test(t, "a cancel request keeps its place among the receipts", func(t *spec.T, w *world) {
		started, goOn := make(chan *agent.TaskRun, 1), make(chan struct{})
		tool := &agent.Tool{Name: "work", Run: func(ctx context.Context, call *agent.Call) (any, error) {
			started <- call.Turn.Begin(ctx, scan)
			<-goOn // it may be ignored
			return "worked", nil
		}}
		_, b := w.run("b", does(calling(turn.Call{Name: "work"}), agent.Response{Text: "done"}), agent.Options{Tools: []*agent.Tool{tool}})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		before, _ := b.Receipts()
		said := w.say(t, a, m.ID, "go")
		run := <-started
		request, err := a.Post(w.ctx, &envelope.Envelope{Channel: m.ID, Sender: "id-a", Type: envelope.TypeTaskCancelRequest, Audience: ids("b"), Data: []byte(`{"task_id":"t1"}`)})
		t.NoError(err)
		w.settle()
		<-run.CancelRequested()
		acks, _ := b.Receipts()
		t.Equal(acks, before)
		close(goOn)
		w.settle()
		acks, nacks := b.Receipts()
		t.Equal(acks, append(before, said, request))
		t.Equal(len(nacks), 0)
		t.Equal(run.State(), task.Running)
	})
	test(t, "a checkpoint outlives the round", func(t *spec.T, w *world) {
		type saved struct{ Page int }
		found := make(chan []any, 1)
		withTask(t, w, func(ctx context.Context, turn *agent.Turn) {
			run := turn.Begin(ctx, scan)
			var got saved
			before, err := run.Load(ctx, &got)
			w.must(err)
			w.must(run.Save(ctx, saved{Page: 7}))
			after, err := turn.Begin(ctx, scan).Load(ctx, &got)
			w.must(err)
			found <- []any{before, after, got}
		})
		t.Equal(<-found, []any{false, true, saved{Page: 7}})
	})
}
