package agenttest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/task"
)

// AddTask stores a task unchanged.
func (n *Network) AddTask(t task.Task) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tasks = append(n.tasks, &t)
	n.touch()
}

func (n *Network) task(id string) (*task.Task, error) {
	for _, t := range n.tasks {
		if t.ID == id {
			return t, nil
		}
	}
	return nil, fault.New(fault.NotFound, "task not found: '%s'", id).Because(fault.NoTask)
}

// Task implements agent.Link.
func (l *Link) Task(_ context.Context, id string) (*task.Task, error) {
	return locked(l, "Task", func() (*task.Task, error) {
		t, err := l.net.task(id)
		if err != nil {
			return nil, err
		}
		copied := *t
		return &copied, nil
	})
}

// defaultLimit is how many tasks a hub lists by default.
const defaultLimit = 50

// ListTasks implements agent.Link.
func (l *Link) ListTasks(_ context.Context, q agent.TaskQuery) ([]*task.Task, error) {
	return locked(l, "ListTasks", func() ([]*task.Task, error) {
		var list []*task.Task
		for _, t := range l.net.tasks {
			matches := (q.Owner == "" || q.Owner == t.Owner) && (q.Channel == "" || q.Channel == t.Channel) && (q.State == "" || q.State == t.State)
			if matches && len(list) < cmp.Or(q.Limit, defaultLimit) {
				copied := *t
				list = append(list, &copied)
			}
		}
		return list, nil
	})
}

// ObserveTask implements agent.Link.
func (l *Link) ObserveTask(_ context.Context, t *task.Task) error {
	_, err := locked(l, "ObserveTask", func() (struct{}, error) {
		copied := *t
		l.net.tasks = append(l.net.tasks, &copied)
		l.net.touch()
		return struct{}{}, nil
	})
	return err
}

// UpdateTask implements agent.Link.
func (l *Link) UpdateTask(_ context.Context, u task.Update) error {
	_, err := locked(l, "UpdateTask", func() (struct{}, error) {
		t, err := l.net.task(u.ID)
		if err != nil || t.State.Terminal() {
			return struct{}{}, err
		}
		if u.Progress != nil {
			t.Progress, t.LastProgressAt = u.Progress, time.Now().UTC()
		}
		if u.Result != nil {
			t.Result = u.Result
		}
		if u.Error != "" {
			t.Error = u.Error
		}
		if u.State != "" {
			t.State = u.State
		}
		if t.State.Terminal() {
			t.CompletedAt = time.Now().UTC()
		}
		l.net.touch()
		return struct{}{}, nil
	})
	return err
}

// RecordObservation implements agent.Link.
func (l *Link) RecordObservation(_ context.Context, o agent.Observation) error {
	_, err := locked(l, "RecordObservation", func() (struct{}, error) {
		l.net.observed = append(l.net.observed, o)
		return struct{}{}, nil
	})
	return err
}

// FireTaskEvent implements agent.Link.
func (l *Link) FireTaskEvent(_ context.Context, taskID, kind string, payload []byte) error {
	_, err := locked(l, "FireTaskEvent", func() (struct{}, error) {
		l.net.events = append(l.net.events, TaskEvent{taskID, kind, string(payload)})
		return struct{}{}, nil
	})
	return err
}

// Checkpoint implements agent.Link.
func (l *Link) Checkpoint(_ context.Context, taskID string, state []byte) error {
	_, err := locked(l, "Checkpoint", func() (struct{}, error) {
		l.net.saved[taskID] = slices.Clone(state)
		return struct{}{}, nil
	})
	return err
}

// ReadCheckpoint implements agent.Link.
func (l *Link) ReadCheckpoint(_ context.Context, taskID string) ([]byte, error) {
	return locked(l, "ReadCheckpoint", func() ([]byte, error) { return l.net.saved[taskID], nil })
}
