// Package task describes work that agents do and hubs observe: the task, its
// states, and how it changes. It stores nothing and sends nothing.
package task

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// Task is what a hub knows of a piece of work. Hubs only observe: owners run their
// tasks.
type Task struct {
	ID      string
	Owner   string
	Spec    Spec
	State   State  // "": created
	Channel string // "" if it belongs to none; fixed when it is first observed

	CreatedAt      time.Time // zero, as with the others: not yet
	StartedAt      time.Time
	CompletedAt    time.Time
	ExpiresAt      time.Time
	LastProgressAt time.Time

	Progress []byte // a JSON object, or nil
	Result   []byte // JSON, or nil
	Error    string
}

// Spec is what a task is about.
type Spec struct {
	Title       string
	Description string
	Payload     []byte // a JSON object, or nil
	Capability  string // counted in the owner's track record, if it names one
}

// State is where a task stands.
type State string

// States of a task; the last four end it.
const (
	Created   State = "created"
	Running   State = "running"
	Completed State = "completed"
	Failed    State = "failed"
	Expired   State = "expired"
	Cancelled State = "cancelled"
)

var states = []State{Created, Running, Completed, Failed, Expired, Cancelled}

// Terminal reports whether the task has ended for good.
func (s State) Terminal() bool { return slices.Index(states, s) >= 2 }

// ParseState reads a state's name.
func ParseState(s string) (State, error) {
	if i := slices.Index(states, State(s)); i >= 0 {
		return states[i], nil
	}
	return "", fault.New(fault.Invalid, "task state %.40q is unknown; it is one of created, running, completed, failed, expired, cancelled", s)
}

// MaxID bounds the id of a task, in bytes, so that it can be part of a log's name.
const MaxID = 255

// maxCapability bounds what the audit records of each task's end: a channel
// ends in one batch with all of its tasks.
const maxCapability = 255

// Accept checks a task that a client sent, and rounds its times to what records
// can hold.
func (t *Task) Accept(limit int) error {
	if len(t.ID) == 0 || len(t.ID) > MaxID {
		return fault.New(fault.Invalid, "task_id has %d bytes; 1 to %d are accepted", len(t.ID), MaxID)
	}
	if t.Owner == "" || len(t.Owner) > envelope.MaxField {
		return fault.New(fault.Invalid, "owner_id has %d bytes; 1 to %d are accepted", len(t.Owner), envelope.MaxField)
	}
	if len(t.Spec.Capability) > maxCapability {
		return fault.New(fault.Invalid, "spec.capability has %d bytes; at most %d are accepted", len(t.Spec.Capability), maxCapability)
	}
	if t.State != "" {
		if _, err := ParseState(string(t.State)); err != nil {
			return err
		}
	}
	for _, at := range []*time.Time{&t.CreatedAt, &t.StartedAt, &t.CompletedAt, &t.ExpiresAt, &t.LastProgressAt} {
		*at = at.Truncate(time.Microsecond).UTC() // as precise as records hold it
	}
	if err := Objects(map[string][]byte{"spec.payload": t.Spec.Payload, "progress": t.Progress}); err != nil {
		return err
	}
	return t.Bound(limit)
}

// Bound refuses a task that is larger than one payload may be.
func (t *Task) Bound(limit int) error {
	if t.Result != nil && !jsontext.Value(t.Result).IsValid() {
		return fault.New(fault.Invalid, "result of task '%s' is not JSON", t.ID)
	}
	size := len(t.Spec.Title) + len(t.Spec.Description) + len(t.Spec.Capability) + len(t.Spec.Payload) +
		len(t.Progress) + len(t.Result) + len(t.Error)
	if size > limit {
		return fault.New(fault.TooLarge, "task '%s' has %d bytes; at most %d (limits.event)", t.ID, size, limit)
	}
	return nil
}

// Objects returns an error if a value is neither empty nor a JSON object.
func Objects(named map[string][]byte) error {
	for name, raw := range named {
		if v := jsontext.Value(raw); len(raw) > 0 && (v.Kind() != '{' || !v.IsValid()) {
			return fault.New(fault.Invalid, "%s is not a JSON object", name)
		}
	}
	return nil
}
