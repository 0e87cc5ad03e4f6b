package wire

import (
	"cmp"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/task"
)

// Task is the wire form of task.Task.
type Task struct {
	ID             string          `json:"task_id" wire:"required"`
	Owner          string          `json:"owner_id" wire:"required"`
	Spec           TaskSpec        `json:"spec"`
	State          string          `json:"state"`
	CreatedAt      Instant         `json:"created_at"`
	StartedAt      Instant         `json:"started_at"`
	CompletedAt    Instant         `json:"completed_at"`
	ExpiresAt      Instant         `json:"expires_at"`
	LastProgressAt Instant         `json:"last_progress_at"`
	Progress       identity.Object `json:"progress"`
	Result         jsontext.Value  `json:"result"`
	Error          string          `json:"error"`
	Channel        *string         `json:"channel_id"`
}

// TaskSpec describes a task.
type TaskSpec struct {
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Payload     identity.Object `json:"payload"`
	Capability  *string         `json:"capability"`
}

// Instant is a time that its sender chose, so an unreadable one is refused. Its
// zero value is null.
type Instant struct{ time.Time }

// MarshalJSONTo writes AG2's form, or null.
func (i Instant) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(appendOptionalTime(nil, i.Time))
}

// UnmarshalJSONFrom reads every form; null and "" are the zero time.
func (i *Instant) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var s string
	if err := json.UnmarshalDecode(dec, &s); err != nil {
		return err
	}
	*i = Instant{}
	if s == "" {
		return nil
	}
	t, err := envelope.ParseTime(s)
	if err == nil && (t.Year() < 1 || t.Year() > 9999) {
		err = fault.New(fault.Invalid, "%s is outside the years 1 to 9999", s)
	}
	i.Time = t
	return err
}

// NewTask returns the wire form of a task.
func NewTask(t *task.Task) *Task {
	return &Task{
		ID: t.ID, Owner: t.Owner, State: string(t.State), Channel: optional(t.Channel),
		Spec:      TaskSpec{Title: t.Spec.Title, Description: t.Spec.Description, Payload: t.Spec.Payload, Capability: optional(t.Spec.Capability)},
		CreatedAt: Instant{t.CreatedAt}, StartedAt: Instant{t.StartedAt}, CompletedAt: Instant{t.CompletedAt},
		ExpiresAt: Instant{t.ExpiresAt}, LastProgressAt: Instant{t.LastProgressAt},
		Progress: t.Progress, Result: t.Result, Error: t.Error,
	}
}

// Read returns the task of the wire form.
func (t *Task) Read() task.Task {
	return task.Task{
		ID: t.ID, Owner: t.Owner, State: task.State(t.State), Channel: deref(t.Channel),
		Spec:      task.Spec{Title: t.Spec.Title, Description: t.Spec.Description, Payload: t.Spec.Payload, Capability: deref(t.Spec.Capability)},
		CreatedAt: t.CreatedAt.Time, StartedAt: t.StartedAt.Time, CompletedAt: t.CompletedAt.Time,
		ExpiresAt: t.ExpiresAt.Time, LastProgressAt: t.LastProgressAt.Time,
		Progress: t.Progress, Result: t.Result, Error: t.Error,
	}
}

func deref(s *string) string { return *cmp.Or(s, new(string)) }

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// AppendTask writes a task.
func AppendTask(buf []byte, t *Task) []byte {
	buf = append(buf, `{"task_id":`...)
	buf = appendText(buf, t.ID)
	buf = append(buf, `,"owner_id":`...)
	buf = appendText(buf, t.Owner)
	buf = append(buf, `,"spec":{"title":`...)
	buf = appendText(buf, t.Spec.Title)
	buf = append(buf, `,"description":`...)
	buf = appendText(buf, t.Spec.Description)
	buf = append(buf, `,"payload":`...)
	buf = appendObject(buf, t.Spec.Payload)
	buf = append(buf, `,"capability":`...)
	buf = appendPointer(buf, t.Spec.Capability)
	buf = append(buf, `},"state":`...)
	buf = appendText(buf, t.State)
	buf = append(buf, `,"created_at":`...)
	buf = appendTime(buf, t.CreatedAt.Time)
	for _, at := range [...]struct {
		key string
		t   Instant
	}{
		{`,"started_at":`, t.StartedAt},
		{`,"completed_at":`, t.CompletedAt},
		{`,"expires_at":`, t.ExpiresAt},
		{`,"last_progress_at":`, t.LastProgressAt},
	} {
		buf = append(buf, at.key...)
		buf = appendOptionalTime(buf, at.t.Time)
	}
	buf = append(buf, `,"progress":`...)
	buf = appendObject(buf, t.Progress)
	buf = append(buf, `,"result":`...)
	buf = appendValue(buf, t.Result)
	buf = append(buf, `,"error":`...)
	buf = appendText(buf, t.Error)
	buf = append(buf, `,"channel_id":`...)
	buf = appendPointer(buf, t.Channel)
	return append(buf, '}')
}

func appendPointer(buf []byte, s *string) []byte {
	if s == nil {
		return append(buf, "null"...)
	}
	return appendText(buf, *s)
}

// appendValue writes any JSON unchanged, or null if there is none.
func appendValue(buf, raw []byte) []byte {
	if len(raw) == 0 {
		return append(buf, "null"...)
	}
	return append(buf, raw...)
}
