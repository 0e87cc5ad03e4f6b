package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// TaskRun is a task that this agent owns. What happens to it is told to the
// hub, and, while the round that began it runs, to the channel. Telling never
// fails the work itself.
type TaskRun struct {
	ID   string
	Spec TaskSpec

	agent   *Agent
	turn    *Turn // nil outside a channel
	outer   *TaskRun
	started time.Time
	expires time.Time

	mu       sync.Mutex
	state    TaskState
	progress int           // how often it was reported
	cancel   chan struct{} // closed when somebody asks to cancel
}

// Begin starts a task within the turn.
func (t *Turn) Begin(ctx context.Context, spec TaskSpec) *TaskRun {
	now := time.Now().UTC()
	run := &TaskRun{
		ID: envelope.NewID(), Spec: spec, agent: t.Agent, outer: t.task, started: now,
		state: TaskRunning, cancel: make(chan struct{}),
	}
	if t.Channel != nil {
		run.turn = t
	}
	if spec.TTL > 0 {
		run.expires = now.Add(spec.TTL)
	}
	t.task = run
	t.Agent.mu.Lock()
	t.Agent.tasks[run.ID] = run
	t.Agent.mu.Unlock()
	run.tell(ctx, envelope.TypeTaskStarted, startedData(run))
	record := &Task{
		ID: run.ID, Owner: t.Agent.Self().ID, Spec: spec, State: TaskRunning,
		CreatedAt: now, StartedAt: now, ExpiresAt: run.expires,
	}
	if run.turn != nil {
		record.Channel = t.Channel.ID
	}
	run.mirror(ctx, "observe_task", t.Agent.link.ObserveTask(ctx, record))
	return run
}

// Task is the innermost task of the turn that has not ended, or nil.
func (t *Turn) Task() *TaskRun {
	if t == nil {
		return nil
	}
	return t.task
}

// State is where the task stands.
func (r *TaskRun) State() TaskState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// CancelRequested is closed when somebody asks to cancel the task. It may go on
// all the same.
func (r *TaskRun) CancelRequested() <-chan struct{} { return r.cancel }

// Progress reports how far the task is: an object whose keys are merged into
// what was reported before.
func (r *TaskRun) Progress(ctx context.Context, payload any) error {
	data, err := encode("progress", payload)
	if err != nil {
		return err
	}
	if r.State().Terminal() {
		return fault.New(fault.Conflict, "task '%s' is already %s", r.ID, r.State())
	}
	r.mu.Lock()
	r.progress++
	r.mu.Unlock()
	r.tell(ctx, envelope.TypeTaskProgress, progressData(r, data))
	r.mirror(ctx, "update_task", r.agent.link.UpdateTask(ctx, TaskUpdate{ID: r.ID, Progress: data}))
	return nil
}

// Complete ends the task with its result.
func (r *TaskRun) Complete(ctx context.Context, result any) error {
	data, err := encode("result", result)
	if err != nil {
		return err
	}
	r.end(ctx, TaskUpdate{ID: r.ID, State: TaskCompleted, Result: data})
	return nil
}

// Fail ends the task with the reason why it could not be done.
func (r *TaskRun) Fail(ctx context.Context, cause error) {
	r.end(ctx, TaskUpdate{ID: r.ID, State: TaskFailed, Error: cause.Error()})
}

// Expire ends the task because its time is over.
func (r *TaskRun) Expire(ctx context.Context) {
	r.end(ctx, TaskUpdate{ID: r.ID, State: TaskExpired, Error: "ttl_expired"})
}

// Cancel ends the task because somebody asked for it.
func (r *TaskRun) Cancel(ctx context.Context, reason string) {
	r.end(ctx, TaskUpdate{ID: r.ID, State: TaskCancelled, Error: reason})
}

var endTypes = map[TaskState]string{
	TaskCompleted: envelope.TypeTaskCompleted,
	TaskFailed:    envelope.TypeTaskFailed,
	TaskExpired:   envelope.TypeTaskExpired,
	TaskCancelled: envelope.TypeTaskCancelled,
}

// end tells of the end once; a second one is ignored.
func (r *TaskRun) end(ctx context.Context, u TaskUpdate) {
	r.mu.Lock()
	if r.state.Terminal() {
		r.mu.Unlock()
		return
	}
	r.state = u.State
	r.mu.Unlock()
	r.agent.forget(r)
	r.tell(ctx, endTypes[u.State], endData(r, u))
	err := r.agent.link.UpdateTask(ctx, u)
	if fault.CodeOf(err) == fault.NotFound {
		return // the hub never heard of it
	}
	r.mirror(ctx, "update_task", err)
	if err == nil && r.Spec.Capability != "" {
		r.mirror(ctx, "record_observation", r.agent.link.RecordObservation(ctx, Observation{
			Capability: r.Spec.Capability, Outcome: u.State, TaskID: r.ID,
			Latency: max(time.Since(r.started), 0),
		}))
	}
}

func (a *Agent) forget(r *TaskRun) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.tasks, r.ID)
}

// noteCancel passes a cancel request on to the task that it names.
func (a *Agent) noteCancel(e *envelope.Envelope) {
	var data struct {
		Task string `json:"task_id"`
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if run, ok := a.tasks[data.Task]; ok {
		select {
		case <-run.cancel:
		default:
			close(run.cancel)
		}
	}
}

// runTask runs a round, as a task where the options say so.
func (a *Agent) runTask(ctx context.Context, t *Turn, p *Prompt) (round turnRound, err error) {
	defer func() { t.over = true }()
	var spec *TaskSpec
	if a.opts.Task != nil {
		spec = a.opts.Task(t)
	}
	if spec == nil {
		return a.round(ctx, t, p)
	}
	run := t.Begin(ctx, *spec)
	limited := ctx
	if !run.expires.IsZero() {
		var stop context.CancelFunc
		limited, stop = context.WithDeadline(ctx, run.expires)
		defer stop()
	}
	round, err = a.round(limited, t, p)
	switch {
	case err == nil:
		err = run.Complete(ctx, round.Body)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		run.Expire(ctx)
	case ctx.Err() == nil:
		run.Fail(ctx, err)
	}
	return round, err
}
