package hub

import (
	"bytes"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/journal"
)

// Task is what the hub knows of a piece of work. It only observes: owners run
// their tasks.
type Task struct {
	ID      string
	Owner   string
	Spec    TaskSpec
	State   TaskState // "": created
	Channel string    // "" if it belongs to none; fixed when it is first observed

	CreatedAt      time.Time // zero, as with the others: not yet
	StartedAt      time.Time
	CompletedAt    time.Time
	ExpiresAt      time.Time
	LastProgressAt time.Time

	Progress []byte // a JSON object, or nil
	Result   []byte // JSON, or nil
	Error    string
}

// TaskSpec is what a task is about.
type TaskSpec struct {
	Title       string
	Description string
	Payload     []byte // a JSON object, or nil
	Capability  string // counted in the owner's track record, if it names one
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

var taskStates = []TaskState{TaskCreated, TaskRunning, TaskCompleted, TaskFailed, TaskExpired, TaskCancelled}

// Terminal reports whether the task has ended, and stays as it is.
func (s TaskState) Terminal() bool { return slices.Index(taskStates, s) >= 2 }

// ParseTaskState reads a state's name.
func ParseTaskState(s string) (TaskState, error) {
	if i := slices.Index(taskStates, TaskState(s)); i >= 0 {
		return taskStates[i], nil
	}
	return "", fault.New(fault.Invalid, "task state %.40q is unknown; it is one of created, running, completed, failed, expired, cancelled", s)
}

// maxCapability bounds what the audit tells of each task's end: a channel ends
// in one batch with all of its tasks.
const maxCapability = 255

// accept checks what a client says of a task, and fills in what it leaves out.
func (t *Task) accept(limit int) error {
	if len(t.ID) == 0 || len(t.ID) > journal.MaxNamePart {
		return fault.New(fault.Invalid, "task_id has %d bytes; 1 to %d are accepted", len(t.ID), journal.MaxNamePart)
	}
	if t.Owner == "" || len(t.Owner) > envelope.MaxField {
		return fault.New(fault.Invalid, "owner_id has %d bytes; 1 to %d are accepted", len(t.Owner), envelope.MaxField)
	}
	if len(t.Spec.Capability) > maxCapability {
		return fault.New(fault.Invalid, "spec.capability has %d bytes; at most %d are accepted", len(t.Spec.Capability), maxCapability)
	}
	if t.State != "" {
		if _, err := ParseTaskState(string(t.State)); err != nil {
			return err
		}
	}
	for _, at := range []*time.Time{&t.CreatedAt, &t.StartedAt, &t.CompletedAt, &t.ExpiresAt, &t.LastProgressAt} {
		*at = at.Truncate(time.Microsecond).UTC() // as records tell it
	}
	if err := objects(map[string][]byte{"spec.payload": t.Spec.Payload, "progress": t.Progress}); err != nil {
		return err
	}
	return t.bounded(limit)
}

// bounded refuses a task that is larger than one payload may be.
func (t *Task) bounded(limit int) error {
	if t.Result != nil && !jsontext.Value(t.Result).IsValid() {
		return fault.New(fault.Invalid, "result of task '%s' is no JSON", t.ID)
	}
	size := len(t.Spec.Title) + len(t.Spec.Description) + len(t.Spec.Capability) + len(t.Spec.Payload) +
		len(t.Progress) + len(t.Result) + len(t.Error)
	if size > limit {
		return fault.New(fault.TooLarge, "task '%s' has %d bytes; at most %d (limits.event)", t.ID, size, limit)
	}
	return nil
}

func objects(named map[string][]byte) error {
	for name, raw := range named {
		if v := jsontext.Value(raw); len(raw) > 0 && (v.Kind() != '{' || !v.IsValid()) {
			return fault.New(fault.Invalid, "%s is not a JSON object", name)
		}
	}
	return nil
}

// MarshalJSON writes every key, times ending in Z.
func (t *Task) MarshalJSON() ([]byte, error) {
	buf := &jsonbuf.Buffer{}
	t.appendTo(buf)
	return buf.Result()
}

func (t *Task) appendTo(buf *jsonbuf.Buffer) {
	buf.Open('{')
	buf.Key("task_id").String(t.ID)
	buf.Key("owner_id").String(t.Owner)
	t.Spec.appendTo(buf.Key("spec"))
	buf.Key("state").String(string(t.State))
	for _, at := range [...]struct {
		key string
		t   time.Time
	}{
		{"created_at", t.CreatedAt},
		{"started_at", t.StartedAt},
		{"completed_at", t.CompletedAt},
		{"expires_at", t.ExpiresAt},
		{"last_progress_at", t.LastProgressAt},
	} {
		buf.Key(at.key)
		if at.t.IsZero() {
			buf.Null()
		} else {
			buf.String(envelope.FormatTime(at.t))
		}
	}
	buf.Key("progress").Object(t.Progress)
	buf.Key("result")
	if t.Result == nil {
		buf.Null()
	} else {
		buf.Value(t.Result)
	}
	buf.Key("error").String(t.Error)
	buf.Key("channel_id").Optional(t.Channel)
	buf.Close('}')
}

func (s *TaskSpec) appendTo(buf *jsonbuf.Buffer) {
	buf.Open('{')
	buf.Key("title").String(s.Title)
	buf.Key("description").String(s.Description)
	buf.Key("payload").Object(s.Payload)
	buf.Key("capability").Optional(s.Capability)
	buf.Close('}')
}

// UnmarshalJSON reads what MarshalJSON writes; what is missing stays zero.
func (t *Task) UnmarshalJSON(data []byte) error {
	var raw struct {
		ID    string `json:"task_id"`
		Owner string `json:"owner_id"`
		Spec  struct {
			Title       string         `json:"title"`
			Description string         `json:"description"`
			Payload     jsontext.Value `json:"payload"`
			Capability  string         `json:"capability"`
		} `json:"spec"`
		State          string         `json:"state"`
		CreatedAt      string         `json:"created_at"`
		StartedAt      string         `json:"started_at"`
		CompletedAt    string         `json:"completed_at"`
		ExpiresAt      string         `json:"expires_at"`
		LastProgressAt string         `json:"last_progress_at"`
		Progress       jsontext.Value `json:"progress"`
		Result         jsontext.Value `json:"result"`
		Error          string         `json:"error"`
		Channel        string         `json:"channel_id"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return fault.Wrap(fault.Invalid, err, "task is refused: %v", err)
	}
	next := Task{
		ID: raw.ID, Owner: raw.Owner, State: TaskState(raw.State), Error: raw.Error, Channel: raw.Channel,
		Spec: TaskSpec{
			Title: raw.Spec.Title, Description: raw.Spec.Description, Capability: raw.Spec.Capability,
			Payload: notEmpty(raw.Spec.Payload, "{}"),
		},
		Progress: notEmpty(raw.Progress, "{}"), Result: notEmpty(raw.Result, "null"),
	}
	for text, at := range map[*string]*time.Time{
		&raw.CreatedAt: &next.CreatedAt, &raw.StartedAt: &next.StartedAt, &raw.CompletedAt: &next.CompletedAt,
		&raw.ExpiresAt: &next.ExpiresAt, &raw.LastProgressAt: &next.LastProgressAt,
	} {
		if *text == "" {
			continue
		}
		var err error
		if *at, err = envelope.ParseTime(*text); err != nil {
			return fault.Wrap(fault.Invalid, err, "task is refused: %v", err)
		}
	}
	*t = next
	return nil
}

// notEmpty is nil for null and for what stands for nothing.
func notEmpty(raw jsontext.Value, nothing string) []byte {
	if len(raw) == 0 || raw.Kind() == 'n' || string(raw) == nothing {
		return nil
	}
	return raw.Clone()
}

// merged lays one JSON object over another, key by key. Values keep their
// bytes, and keys the place where they first stood.
func merged(under, over []byte) ([]byte, error) {
	if len(under) == 0 {
		return over, nil
	}
	var names []string
	values := map[string]jsontext.Value{}
	for _, text := range [][]byte{under, over} {
		if len(text) == 0 {
			continue
		}
		dec := jsontext.NewDecoder(bytes.NewReader(text))
		if _, err := dec.ReadToken(); err != nil {
			return nil, err
		}
		for dec.PeekKind() == '"' {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			value, err := dec.ReadValue()
			if err != nil {
				return nil, err
			}
			if _, known := values[key]; !known {
				names = append(names, key)
			}
			values[key] = value.Clone()
		}
	}
	buf := &jsonbuf.Buffer{}
	buf.Open('{')
	for _, name := range names {
		buf.Key(name).Value(values[name])
	}
	buf.Close('}')
	return buf.Result()
}
