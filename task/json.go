package task

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// MarshalJSON writes every key, times ending in Z.
func (t *Task) MarshalJSON() ([]byte, error) {
	buf := &jsonbuf.Buffer{}
	t.AppendTo(buf)
	return buf.Result()
}

// AppendTo writes the task as a JSON object.
func (t *Task) AppendTo(buf *jsonbuf.Buffer) {
	buf.Open('{')
	buf.Key("task_id").String(t.ID)
	buf.Key("owner_id").String(t.Owner)
	t.Spec.AppendTo(buf.Key("spec"))
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

// AppendTo writes the spec as a JSON object.
func (s *Spec) AppendTo(buf *jsonbuf.Buffer) {
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
		ID: raw.ID, Owner: raw.Owner, State: State(raw.State), Error: raw.Error, Channel: raw.Channel,
		Spec: Spec{
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

// notEmpty returns nil for null and for the text of an empty value.
func notEmpty(raw jsontext.Value, nothing string) []byte {
	if len(raw) == 0 || raw.Kind() == 'n' || string(raw) == nothing {
		return nil
	}
	return raw.Clone()
}
