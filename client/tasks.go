package client

import (
	"cmp"
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/task"
)

// Task returns what the hub knows of a task.
func (i *Identity) Task(ctx context.Context, id string) (*task.Task, error) {
	var t wire.Task
	if err := i.client.fetch(ctx, wire.GetTask, wire.ByTask{Task: id}, &t); err != nil {
		return nil, err
	}
	return readTask(&t), nil
}

// ListTasks lists tasks.
func (i *Identity) ListTasks(ctx context.Context, q agent.TaskQuery) ([]*task.Task, error) {
	params := wire.ListTasksParams{Owner: q.Owner, Channel: q.Channel, State: string(q.State)}
	if q.Limit > 0 {
		limit := wire.Index(q.Limit)
		params.Limit = &limit
	}
	var list []*wire.Task
	if err := i.client.fetch(ctx, wire.ListTasks, params, &list); err != nil {
		return nil, err
	}
	tasks := make([]*task.Task, len(list))
	for n, t := range list {
		tasks[n] = readTask(t)
	}
	return tasks, nil
}

// ObserveTask reports a task to the hub; without an owner it is the identity's.
func (i *Identity) ObserveTask(ctx context.Context, t *task.Task) error {
	owner := cmp.Or(t.Owner, i.id)
	told := wire.NewTask(t)
	told.Owner = owner
	if t.State == "" {
		told.State = string(task.Created)
	}
	return i.client.fetch(ctx, wire.ObserveTask, wire.ObserveTaskParams{Metadata: told}, nil)
}

// UpdateTask changes a task.
func (i *Identity) UpdateTask(ctx context.Context, u task.Update) error {
	return i.client.fetch(ctx, wire.UpdateTask, wire.UpdateTaskParams{
		Task: u.ID, State: string(u.State), Progress: u.Progress, Result: u.Result, Error: u.Error,
	}, nil)
}

// RecordObservation counts the end of a task in the identity's track record.
func (i *Identity) RecordObservation(ctx context.Context, o agent.Observation) error {
	params := wire.ObservationParams{Owner: i.id, Capability: o.Capability, Outcome: identity.Outcome(o.Outcome), Task: o.TaskID}
	if o.Latency > 0 {
		ms := wire.Millis(o.Latency.Milliseconds())
		params.LatencyMS = &ms
	}
	return i.client.fetch(ctx, wire.RecordObservation, params, nil)
}

// FireTaskEvent sends an event about a task to the hub's listeners.
func (i *Identity) FireTaskEvent(ctx context.Context, taskID, kind string, payload []byte) error {
	return i.client.fetch(ctx, wire.FireTaskEvent, wire.TaskEventParams{Task: taskID, Kind: kind, Payload: payload}, nil)
}

// Checkpoint stores one JSON object for a task, in place of the last one.
func (i *Identity) Checkpoint(ctx context.Context, taskID string, state []byte) error {
	return i.client.fetch(ctx, wire.CheckpointTask, wire.CheckpointParams{Task: taskID, State: state}, nil)
}

// ReadCheckpoint returns a task's checkpoint, or nil.
func (i *Identity) ReadCheckpoint(ctx context.Context, taskID string) ([]byte, error) {
	return i.client.ask(ctx, wire.ReadTaskCheckpoint, wire.ByTask{Task: taskID}, nil)
}

func readTask(told *wire.Task) *task.Task {
	t := told.Read()
	t.Result = value(told.Result)
	return &t
}

func value(raw jsontext.Value) []byte {
	if raw.Kind() == 'n' {
		return nil
	}
	return raw
}

var _ agent.Link = (*Identity)(nil)
