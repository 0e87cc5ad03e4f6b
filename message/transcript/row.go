package transcript

import (
	"time"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// Canonical returns the session as a row, with its messages. A bad message is
// reported at its position, as an error envelope.
func (s Session) Canonical() *value.Map {
	messages := make([]any, 0, len(s.Messages))
	for _, row := range s.Messages {
		messages = append(messages, row.Report().Canonical())
	}
	return s.Summary().Set("messages", messages)
}

// Report returns the envelope of a row, or one that says what is wrong with it.
func (r Row) Report() message.Envelope {
	if r.Err == nil {
		return r.Envelope
	}
	return message.Envelope{
		Type:     message.TypeError,
		Role:     message.TypeError.DefaultRole(),
		Content:  "This message could not be read: " + r.Err.Error(),
		Payload:  value.New().Set("error", r.Err.Error()),
		Metadata: value.New(),
	}
}

// MarshalJSON writes the row's report.
func (r Row) MarshalJSON() ([]byte, error) { return r.Report().MarshalJSON() }

// Summary returns the session as a row without its messages.
func (s Session) Summary() *value.Map {
	var responseID any
	if s.ProviderResponseID != nil {
		responseID = *s.ProviderResponseID
	}
	return value.New().
		Set("session_id", s.ID).
		Set("workspace_type", s.Scope.Type).
		Set("workspace_id", s.Scope.ID).
		Set("owner_type", s.Owner.Type).
		Set("owner_key", s.Owner.Key).
		Set("user_id", value.Int(s.Owner.userID())).
		Set("agent_slug", s.AgentSlug).
		Set("title", s.Title).
		Set("metadata", orEmpty(s.Metadata)).
		Set("provider", s.Provider).
		Set("model", s.Model).
		Set("provider_response_id", responseID).
		Set("context", s.Context).
		Set("mode", s.Context).
		Set("created_at", s.CreatedAt).
		Set("updated_at", s.UpdatedAt).
		Set("last_read_at", orNull(s.LastReadAt)).
		Set("expires_at", orNull(s.ExpiresAt))
}

// Unread counts what a person has not seen: the assistant's messages, without
// tool traffic, all of them or those later than lastReadAt.
func Unread(messages []message.Envelope, lastReadAt string) int {
	read, everRead := parseTime(lastReadAt)
	unread := 0
	for _, e := range messages {
		if e.Role != message.RoleAssistant || e.Type == message.TypeToolCall || e.Type == message.TypeToolResult {
			continue
		}
		if lastReadAt == "" {
			unread++
			continue
		}
		at, ok := parseTime(value.Text(e.Metadata.At("timestamp")))
		if ok && everRead && at.After(read) {
			unread++
		}
	}
	return unread
}

func parseTime(s string) (time.Time, bool) {
	for _, layout := range []string{time.DateTime, time.RFC3339Nano, "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func orEmpty(m *value.Map) *value.Map {
	if m == nil {
		return value.New()
	}
	return m
}
