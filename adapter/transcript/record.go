package transcript

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Types of records. Locks are in the side log, deltas and resets are live.
const (
	TypeCreated   = "transcript.created"
	TypeAppended  = "transcript.appended"
	TypeReplaced  = "transcript.replaced"  // the tail, starting at a message
	TypeCompacted = "transcript.compacted" // the beginning, up to a message
	TypeDescribed = "transcript.described"
	TypeStarted   = "transcript.run_started"
	TypeEnded     = "transcript.run_ended"
	TypeLocked    = "transcript.locked"
	TypeUnlocked  = "transcript.unlocked"
	TypeDelta     = "transcript.delta"
	TypeReset     = "transcript.reset"
)

// Mark is the ext of the server's own records; other surfaces cannot set it.
var Mark = []byte(`{"chat":true}`)

// Rows are messages in the order of the transcript, each as it was stored.
type Rows [][]byte

// Change is a record that changes messages.
type Change struct {
	// Of is the sequence of the change that this one is based on; it is refused if
	// another one came in between. 0 is not compared.
	Of uint64 `json:"of,omitzero"`
	// From is the first message that a replaced tail replaces, counted from 0.
	From int `json:"from,omitzero"`
	// Through is how many messages a compaction replaces.
	Through int      `json:"through,omitzero"`
	Rows    Rows     `json:"rows"`
	Details *Details `json:"details,omitzero"`
	Run     string   `json:"run_id,omitzero"` // the run that made it
}

// Details describe a session. A nil text or a nil map does not change the stored
// value.
type Details struct {
	Title      *string        `json:"title,omitzero"`
	Provider   *string        `json:"provider,omitzero"`
	Model      *string        `json:"model,omitzero"`
	ResponseID *string        `json:"provider_response_id,omitzero"`
	Metadata   jsontext.Value `json:"metadata,omitzero"`
}

func (d *Details) size() int {
	n := len(d.Metadata)
	for _, text := range []*string{d.Title, d.Provider, d.Model, d.ResponseID} {
		if text != nil {
			n += len(*text)
		}
	}
	return n
}

// Started is the record of a run that begins.
type Started struct {
	Run   string         `json:"run_id"`
	Agent string         `json:"agent"`
	Input jsontext.Value `json:"input"` // as the client sent it
}

// Ended is the record of a run's end.
type Ended struct {
	Run    string         `json:"run_id"`
	Status string         `json:"status"`
	Answer jsontext.Value `json:"answer,omitzero"` // the answer that the client got
	Began  uint64         `json:"began,omitzero"`  // sequence of the run's start
	// Talk is how many conversations with agents the session has used so far.
	Talk int `json:"talk,omitzero"`
}

// Locked is the record of a lock that was taken, and of the end of the lock with
// that token.
type Locked struct {
	Token string `json:"token"`
	Ends  int64  `json:"ends,omitzero"` // nanoseconds since 1970
	Run   string `json:"run_id,omitzero"`
	// Replaces is the token of the lock that is taken over.
	Replaces string `json:"replaces,omitzero"`
}

// Prefixes of rows that are not JSON objects.
const (
	rowText   = "text:"
	rowBinary = "base64:"
)

// MarshalJSONTo writes each row that is a JSON object unchanged, and any other as a
// text.
func (r Rows) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	for _, row := range r {
		var err error
		switch v := jsontext.Value(row); {
		case v.Kind() == '{' && v.IsValid() && len(bytes.TrimSpace(row)) == len(row):
			err = enc.WriteValue(v)
		case quoted(rowText, string(row)).IsValid():
			err = enc.WriteValue(quoted(rowText, string(row)))
		default:
			err = enc.WriteToken(jsontext.String(rowBinary + base64.StdEncoding.EncodeToString(row)))
		}
		if err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndArray)
}

func quoted(prefix, text string) jsontext.Value {
	value, err := jsontext.AppendQuote(nil, prefix+text)
	if err != nil {
		return nil
	}
	return value
}

// UnmarshalJSONFrom reads what MarshalJSONTo wrote.
func (r *Rows) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var list []jsontext.Value
	if err := json.UnmarshalDecode(dec, &list); err != nil {
		return err
	}
	*r = make(Rows, len(list))
	for i, v := range list {
		if v.Kind() != '"' {
			(*r)[i] = v
			continue
		}
		var text string
		if err := json.Unmarshal(v, &text); err != nil {
			return err
		}
		if encoded, ok := strings.CutPrefix(text, rowBinary); ok {
			raw, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil {
				return err
			}
			(*r)[i] = raw
			continue
		}
		(*r)[i] = []byte(strings.TrimPrefix(text, rowText))
	}
	return nil
}

// Encode writes a record's payload, with its rows byte for byte.
func Encode(record any) ([]byte, error) {
	return json.Marshal(record, jsontext.PreserveRawStrings(true), jsontext.CanonicalizeRawFloats(false), jsontext.CanonicalizeRawInts(false))
}

// Apply returns the transcript after a record of the history. A record that does not
// change messages, or does not fit the transcript, changes nothing.
func Apply(rows Rows, eventType string, data []byte) Rows {
	var c Change
	if json.Unmarshal(data, &c) != nil {
		return rows
	}
	switch {
	case eventType == TypeAppended:
		return append(rows, c.Rows...)
	case eventType == TypeReplaced && c.From >= 0 && c.From <= len(rows):
		return append(rows[:c.From:c.From], c.Rows...)
	case eventType == TypeCompacted && c.Through >= 0 && c.Through <= len(rows):
		return append(append(Rows{}, c.Rows...), rows[c.Through:]...)
	}
	return rows
}
