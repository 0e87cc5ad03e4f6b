package task

import (
	"bytes"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/internal/jsonbuf"
)

// Update changes a task; zero fields leave it as it is.
type Update struct {
	ID       string
	State    State
	Progress []byte // a JSON object, merged key by key
	Result   []byte // JSON
	Error    string
}

// Observe applies what the owner reports of the task now.
func (t *Task) Observe(seen *Task, now time.Time) (err error) {
	if seen.State != "" {
		t.Become(seen.State, now)
	}
	if !seen.StartedAt.IsZero() {
		t.StartedAt = seen.StartedAt
	}
	if !seen.ExpiresAt.IsZero() {
		t.ExpiresAt = seen.ExpiresAt
	}
	t.Progress, err = merged(t.Progress, seen.Progress)
	return err
}

// Become moves the task to a state, and notes the time if that ends it.
func (t *Task) Become(state State, now time.Time) {
	t.State = state
	if state.Terminal() {
		t.CompletedAt = micro(now)
	}
}

// Apply changes the task.
func (t *Task) Apply(u Update, now time.Time) (err error) {
	if len(u.Progress) > 0 && string(u.Progress) != "{}" {
		if t.Progress, err = merged(t.Progress, u.Progress); err != nil {
			return err
		}
		t.LastProgressAt = micro(now)
	}
	if len(u.Result) > 0 && string(u.Result) != "null" {
		t.Result = u.Result
	}
	if u.Error != "" {
		t.Error = u.Error
	}
	if u.State != "" {
		t.Become(u.State, now)
	}
	return nil
}

// micro returns an instant as precise as records hold it.
func micro(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// merged sets the keys of one JSON object in another. Values keep their bytes,
// and keys their first position.
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
