package message

import (
	"time"

	"github.com/parley-hub/parley/message/value"
)

// Envelope is a canonical message. Content is a string, a []any or a
// *value.Map; a nil Payload or Metadata is an empty one. Empty ID and dates
// are absent.
//
// Values inside may be shared with what the envelope was made from and are
// not to be changed; the top level of Payload and Metadata is the envelope's.
type Envelope struct {
	Type      Type
	Role      string
	Content   any
	Payload   *value.Map
	Metadata  *value.Map
	ID        string
	CreatedAt string
	UpdatedAt string
}

// Canonical returns the envelope as a map, its keys in the order of output.
func (e Envelope) Canonical() *value.Map {
	m := value.New().
		Set("schema", Schema).
		Set("version", value.Int(Version)).
		Set("type", string(e.Type)).
		Set("role", e.Role).
		Set("content", e.Content).
		Set("payload", orEmpty(e.Payload)).
		Set("metadata", orEmpty(e.Metadata))
	for _, field := range e.optional() {
		if field.value != "" {
			m.Set(field.key, field.value)
		}
	}
	return m
}

type optionalField struct{ key, value string }

func (e Envelope) optional() [3]optionalField {
	return [3]optionalField{{"id", e.ID}, {"created_at", e.CreatedAt}, {"updated_at", e.UpdatedAt}}
}

// AppendJSON writes the envelope as JSON.
func (e Envelope) AppendJSON(dst []byte) ([]byte, error) {
	var err error
	dst = append(dst, `{"schema":"`+Schema+`","version":1,"type":`...)
	for _, field := range [...]struct {
		key   string
		value any
	}{
		{"", string(e.Type)},
		{`,"role":`, e.Role},
		{`,"content":`, e.Content},
		{`,"payload":`, e.Payload},
		{`,"metadata":`, e.Metadata},
	} {
		dst = append(dst, field.key...)
		if dst, err = value.Append(dst, field.value); err != nil {
			return dst, err
		}
	}
	for _, field := range e.optional() {
		if field.value == "" {
			continue
		}
		dst = append(dst, `,"`+field.key+`":`...)
		if dst, err = value.Append(dst, field.value); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// MarshalJSON writes the envelope.
func (e Envelope) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

// UnmarshalJSON reads any shape Normalize takes.
func (e *Envelope) UnmarshalJSON(data []byte) error {
	read, err := NormalizeJSON(data)
	if err != nil {
		return err
	}
	*e = read
	return nil
}

// Text returns the content if it is a string.
func (e Envelope) Text() (string, bool) {
	s, ok := e.Content.(string)
	return s, ok
}

// ToolName returns the tool a call or a result is about.
func (e Envelope) ToolName() string {
	name, _ := e.Payload.At("tool_name").(string)
	return name
}

// ToolCallID returns the id that pairs a call with its result.
func (e Envelope) ToolCallID() string {
	id, _ := e.Metadata.At("tool_call_id").(string)
	return id
}

// FormatTime writes a date that Parley itself puts on a message.
func FormatTime(t time.Time) string { return t.UTC().Format(time.DateTime) }

func orEmpty(m *value.Map) *value.Map {
	if m == nil {
		return value.New()
	}
	return m
}
