package agent

import (
	"context"
	"time"
)

// Tasks is what a link does with tasks. The hub only observes them; their
// owners run them.
type Tasks interface {
	Task(ctx context.Context, id string) (*Task, error)
	ListTasks(ctx context.Context, q TaskQuery) ([]*Task, error)
	ObserveTask(ctx context.Context, t *Task) error
	UpdateTask(ctx context.Context, u TaskUpdate) error
	RecordObservation(ctx context.Context, o Observation) error
	FireTaskEvent(ctx context.Context, taskID, kind string, payload []byte) error
	// Checkpoint keeps one JSON object for a task, of which the last counts;
	// ReadCheckpoint returns it, or nil.
	Checkpoint(ctx context.Context, taskID string, state []byte) error
	ReadCheckpoint(ctx context.Context, taskID string) ([]byte, error)
}

// Task is what a hub knows of a task.
type Task struct {
	ID      string
	Owner   string
	Spec    TaskSpec
	State   TaskState
	Channel string // "" if it belongs to none

	CreatedAt      time.Time
	StartedAt      time.Time
	CompletedAt    time.Time // zero: not yet, as for the others
	ExpiresAt      time.Time
	LastProgressAt time.Time

	Progress []byte // a JSON object, or nil
	Result   []byte // JSON, or nil
	Error    string
}

// TaskSpec is what a task is about.
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

// TaskState is where a task stands.
type TaskState string

// States of a task; the last four end it.
const (
	TaskCreated   TaskState = "created"
	TaskRunning   TaskState = "running"
	TaskCompleted TaskState = "completed"
	TaskFailed    TaskState = "failed"
	TaskExpired   TaskState = "expired"
	TaskCancelled TaskState = "cancelled"
)

// Terminal reports whether the task has ended.
func (s TaskState) Terminal() bool {
	switch s {
	case TaskCompleted, TaskFailed, TaskExpired, TaskCancelled:
		return true
	}
	return false
}

// TaskQuery selects tasks; its zero fields select everything.
type TaskQuery struct {
	Owner   string
	Channel string
	State   TaskState
	Limit   int // 0: as many as the hub lists by itself
}

// TaskUpdate changes a task; zero fields leave it as it is.
type TaskUpdate struct {
	ID       string
	State    TaskState
	Progress []byte // merged by key
	Result   []byte
	Error    string
}

// Observation counts the end of a task in its owner's track record.
type Observation struct {
	Capability string
	Outcome    TaskState
	Latency    time.Duration
	TaskID     string
}
