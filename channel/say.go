package channel

import (
	"strings"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// Speaker is an adapter whose channels take messages from other dialects.
// Without it only the channel's own dialect speaks there.
type Speaker interface {
	// Say returns the envelopes of a message. The hub calls it under the channel's
	// lock and admits them as one batch, so that turns, visibility and limits are
	// checked as usual. The message has an id and a date. Its metadata may have
	// `name`, the sender's name in the channel's dialect, or its registered name where
	// members have no others; `work`, the item's id of the work that it is about; and
	// `cause`, the id that the channel's dialect has for the message that it answers.
	Say(m *Metadata, s State, sender string, msg message.Envelope) ([]Draft, error)
}

// Worker is an adapter whose channels have their own form for steps of work. Without
// it they hold the task events that every channel knows, or none.
type Worker interface {
	// Work returns the envelopes of a step of the sender's work: the item's id, name,
	// state, text and date. The hub calls it as it calls Say. If there are none, the
	// channel does not show this step.
	Work(m *Metadata, s State, sender string, step *Item) ([]Draft, error)
}

// MemberNamer is an adapter whose members have names of their own in its
// channels, and in those that take their members from them.
type MemberNamer interface {
	// MemberName returns the name of a member; false: it is not a member, or has
	// several names.
	MemberName(m *Metadata, s State, agent string) (string, bool)
}

// MessageNamer is an adapter whose messages have ids of its dialect's own.
type MessageNamer interface {
	// MessageID returns the id of the message in an envelope; empty: it has none.
	MessageID(e *envelope.Envelope) string
}

// SaidName returns the sender's name in a message's metadata, or "".
func SaidName(msg message.Envelope) string {
	name, _ := msg.Metadata.At("name").(string)
	return name
}

// SaidUnder returns the work, as the channel identifies it, that a message is about
// by its metadata; empty: none.
func SaidUnder(msg message.Envelope) string {
	work, _ := msg.Metadata.At("work").(string)
	return work
}

// SaidBecauseOf returns the message, as the channel identifies it, that a message
// answers by its metadata; empty: none.
func SaidBecauseOf(msg message.Envelope) string {
	cause, _ := msg.Metadata.At("cause").(string)
	return cause
}

// SaidText returns a message as text; content that is not text is named in brackets.
// Calls and results of tools are refused.
func SaidText(msg message.Envelope) (string, error) {
	switch msg.Type {
	case message.TypeToolCall, message.TypeToolResult, message.TypeDelta:
		return "", fault.New(fault.Invalid, "a message of the type `%s` is not said; say a text", msg.Type)
	}
	text := contentText(msg.Content)
	if text == "" {
		return "", fault.New(fault.Invalid, "the message is empty; say a text")
	}
	return text, nil
}

// contentText returns a content as text.
func contentText(content any) string {
	switch c := content.(type) {
	case string:
		return c
	case []any:
		parts := make([]string, 0, len(c))
		for _, part := range c {
			if text := contentText(part); text != "" {
				parts = append(parts, text)
			}
		}
		return strings.Join(parts, "\n")
	case *value.Map:
		if text, ok := c.At("text").(string); ok {
			return text
		}
		kind, _ := c.At("type").(string)
		return Attachment(kind, textOf(c, "mime_type", "media_type", "mediaType"), textOf(c, "url", "uri", "name"))
	}
	return ""
}

// textOf returns the first of some members that is a string.
func textOf(m *value.Map, names ...string) string {
	for _, name := range names {
		if text, ok := m.At(name).(string); ok && text != "" {
			return text
		}
	}
	return ""
}

// Attachment names a content that is not text.
func Attachment(parts ...string) string {
	out := "[Attachment"
	for _, part := range parts {
		if part != "" {
			out += " " + part
		}
	}
	return out + "]"
}
