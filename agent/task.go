package agent

import (
	"context"
	"time"

	"github.com/parley-hub/parley/task"
)

// Tasks is what a link does with tasks. The hub only observes them; their
// owners run them.
type Tasks interface {
	Task(ctx context.Context, id string) (*task.Task, error)
	ListTasks(ctx context.Context, q TaskQuery) ([]*task.Task, error)
	ObserveTask(ctx context.Context, t *task.Task) error
	UpdateTask(ctx context.Context, u task.Update) error
	RecordObservation(ctx context.Context, o Observation) error
	FireTaskEvent(ctx context.Context, taskID, kind string, payload []byte) error
	// Checkpoint stores one JSON object for a task and replaces the one before;
	// ReadCheckpoint returns it, or nil.
	Checkpoint(ctx context.Context, taskID string, state []byte) error
	ReadCheckpoint(ctx context.Context, taskID string) ([]byte, error)
}

// TaskSpec describes a task that an agent begins.
type TaskSpec struct {
	// ID names the task; empty mints one. A round that is tried again finds its
	// checkpoint under the same id: Call.Key is one that stays.
	ID          string
	Title       string
	Description string
	Payload     []byte // a JSON object, or nil
	Capability  string // counted in the owner's track record; "" is not
	TTL         time.Duration
}

// spec returns the part of the spec that hubs keep.
func (s *TaskSpec) spec() task.Spec {
	return task.Spec{Title: s.Title, Description: s.Description, Payload: s.Payload, Capability: s.Capability}
}

// TaskQuery selects tasks; its zero fields select everything.
type TaskQuery struct {
	Owner   string
	Channel string
	State   task.State
	Limit   int // 0: as many as the hub lists by itself
}

// Observation counts the end of a task in its owner's track record.
type Observation struct {
	Capability string
	Outcome    task.State
	Latency    time.Duration
	TaskID     string
}
