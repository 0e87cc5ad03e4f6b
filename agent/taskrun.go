package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/task"
)

// TaskRun is a task that this agent owns. Its changes are reported to the hub
// and, while the round that began it runs, to the channel. A failed report
// never fails the work itself.
type TaskRun struct {
	ID   string
	Spec TaskSpec

	turn    *Turn
	outer   *TaskRun
	started time.Time
	expires time.Time

	mu       sync.Mutex
	state    task.State
	progress int           // how often it was reported
	cancel   chan struct{} // closed when somebody asks to cancel
}

// Begin starts a task within the turn.
func (t *Turn) Begin(ctx context.Context, spec TaskSpec) *TaskRun {
	now := time.Now().UTC()
	if spec.ID == "" {
		spec.ID = envelope.NewID()
	}
	run := &TaskRun{ID: spec.ID, Spec: spec, turn: t, started: now, state: task.Running, cancel: make(chan struct{})}
	if spec.TTL > 0 {
		run.expires = now.Add(spec.TTL)
	}
	t.enter(run)
	run.tell(ctx, envelope.TypeTaskStarted, startedData(run))
	run.mirror(ctx, "observe_task", t.Agent.link.ObserveTask(ctx, &task.Task{
		ID: run.ID, Owner: t.Agent.Self().ID, Spec: spec.spec(), State: task.Running, Channel: t.channelID(),
		CreatedAt: now, StartedAt: now, ExpiresAt: run.expires,
	}))
	return run
}

// Task returns the innermost task of the turn that has not ended, or nil.
func (t *Turn) Task() *TaskRun {
	if t == nil {
		return nil
	}
	t.Agent.mu.Lock()
	defer t.Agent.mu.Unlock()
	for t.task != nil && t.Agent.tasks[t.task.ID] == nil {
		t.task = t.task.outer // ended
	}
	return t.task
}

func (t *Turn) enter(run *TaskRun) {
	outer := t.Task()
	t.Agent.mu.Lock()
	defer t.Agent.mu.Unlock()
	run.outer, t.task = outer, run
	t.Agent.tasks[run.ID] = run
}

// speaks reports whether the turn has a channel in which to report tasks now.
func (t *Turn) speaks() bool {
	t.Agent.mu.Lock()
	defer t.Agent.mu.Unlock()
	return t.Channel != nil && !t.over
}

func (t *Turn) endRound() {
	t.Agent.mu.Lock()
	defer t.Agent.mu.Unlock()
	t.over = true
}

func (t *Turn) channelID() string {
	if t.Channel == nil {
		return ""
	}
	return t.Channel.ID
}

// State returns where the task stands.
func (r *TaskRun) State() task.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// CancelRequested returns a channel that is closed when somebody asks to cancel
// the task. The task may ignore that.
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
	r.mirror(ctx, "update_task", r.link().UpdateTask(ctx, task.Update{ID: r.ID, Progress: data}))
	return nil
}

// Save keeps a JSON object for the task, in place of the last one, so that work
// can go on from there after a crash.
func (r *TaskRun) Save(ctx context.Context, state any) error {
	data, err := encode("checkpoint", state)
	if err != nil {
		return err
	}
	return r.link().Checkpoint(ctx, r.ID, object(data))
}

// Load reads what was saved last, if anything was.
func (r *TaskRun) Load(ctx context.Context, into any) (bool, error) {
	data, err := r.link().ReadCheckpoint(ctx, r.ID)
	if err != nil || data == nil {
		return false, err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return false, fault.Wrap(fault.Invalid, err, "checkpoint of task '%s': %v", r.ID, err)
	}
	return true, nil
}

// Complete ends the task with its result.
func (r *TaskRun) Complete(ctx context.Context, result any) error {
	data, err := encode("result", result)
	if err != nil {
		return err
	}
	r.end(ctx, task.Update{ID: r.ID, State: task.Completed, Result: data})
	return nil
}

// Fail ends the task with the reason why it could not be done.
func (r *TaskRun) Fail(ctx context.Context, cause error) {
	r.end(ctx, task.Update{ID: r.ID, State: task.Failed, Error: cause.Error()})
}

// Expire ends the task because its time is over.
func (r *TaskRun) Expire(ctx context.Context) {
	r.end(ctx, task.Update{ID: r.ID, State: task.Expired, Error: "ttl_expired"})
}

// Cancel ends the task because somebody asked for it.
func (r *TaskRun) Cancel(ctx context.Context, reason string) {
	r.end(ctx, task.Update{ID: r.ID, State: task.Cancelled, Error: reason})
}

var endTypes = map[task.State]string{
	task.Completed: envelope.TypeTaskCompleted,
	task.Failed:    envelope.TypeTaskFailed,
	task.Expired:   envelope.TypeTaskExpired,
	task.Cancelled: envelope.TypeTaskCancelled,
}

// end reports the end once; later calls are ignored.
func (r *TaskRun) end(ctx context.Context, u task.Update) {
	r.mu.Lock()
	if r.state.Terminal() {
		r.mu.Unlock()
		return
	}
	r.state = u.State
	r.mu.Unlock()
	r.turn.Agent.forget(r)
	r.tell(ctx, endTypes[u.State], endData(r, u))
	err := r.link().UpdateTask(ctx, u)
	if fault.CodeOf(err) == fault.NotFound {
		return // the hub never heard of it
	}
	r.mirror(ctx, "update_task", err)
	if err == nil && r.Spec.Capability != "" {
		r.mirror(ctx, "record_observation", r.link().RecordObservation(ctx, Observation{
			Capability: r.Spec.Capability, Outcome: u.State, TaskID: r.ID,
			Latency: max(time.Since(r.started), 0),
		}))
	}
}

func (r *TaskRun) link() Link { return r.turn.Agent.link }

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
func (a *Agent) runTask(ctx context.Context, t *Turn, p *Prompt) (round turn.Round, err error) {
	defer t.endRound()
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
