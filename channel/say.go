package channel

import (
	"strings"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// Speaker is an adapter whose channels take what is said in other dialects.
// Without it only the channel's own dialect speaks there.
type Speaker interface {
	// Say returns the envelopes by which a sender says a message. The hub calls it
	// under the channel's lock and admits them as one batch, so that turns,
	// visibility and limits are judged as ever. The message has an id and a date;
	// `name` in its metadata is what the channel's dialect calls the sender, if the
	// channel knows it, or the registered name where members have no names of their
	// own, `work` the item's id of the work that it is about, and `cause` what the
	// channel's dialect calls the message that it answers.
	Say(m *Metadata, s State, sender string, msg message.Envelope) ([]Draft, error)
}

// Worker is an adapter whose channels are told of work in their own form. Without it
// they hold the task events that every channel knows, or none.
type Worker interface {
	// Work returns the envelopes by which a sender tells of a step of its work: the
	// item's id, name, state, text and date. The hub calls it as it calls Say. No
	// envelopes: this step is not told there.
	Work(m *Metadata, s State, sender string, step *Item) ([]Draft, error)
}

// MemberNamer is an adapter whose members have names of their own in its
// channels, and in those that take their members from them.
type MemberNamer interface {
	// MemberName is what a member is called; false: it is no member, or has several
	// names.
	MemberName(m *Metadata, s State, agent string) (string, bool)
}

// MessageNamer is an adapter whose messages have ids of its dialect's own.
type MessageNamer interface {
	// MessageID is the id of the message that an envelope is; empty: it is none.
	MessageID(e *envelope.Envelope) string
}

// SaidName is the name that a message's metadata gives its sender, or none.
func SaidName(msg message.Envelope) string {
	name, _ := msg.Metadata.At("name").(string)
	return name
}

// SaidUnder is the work, in the channel's own terms, that a message's metadata says it
// is about; empty: none.
func SaidUnder(msg message.Envelope) string {
	work, _ := msg.Metadata.At("work").(string)
	return work
}

// SaidBecauseOf is the message, in the channel's own terms, that a message's metadata
// says it answers; empty: none.
func SaidBecauseOf(msg message.Envelope) string {
	cause, _ := msg.Metadata.At("cause").(string)
	return cause
}

// SaidText is what a message says in plain text; what is not text is named in
// brackets. A call or a result of a tool is nothing that somebody says.
func SaidText(msg message.Envelope) (string, error) {
	switch msg.Type {
	case message.TypeToolCall, message.TypeToolResult, message.TypeDelta:
		return "", fault.New(fault.Invalid, "a message of the type `%s` is not said; say a text", msg.Type)
	}
	text := plain(msg.Content)
	if text == "" {
		return "", fault.New(fault.Invalid, "the message is empty; say a text")
	}
	return text, nil
}

// plain is a content as text.
func plain(content any) string {
	switch c := content.(type) {
	case string:
		return c
	case []any:
		parts := make([]string, 0, len(c))
		for _, part := range c {
			if text := plain(part); text != "" {
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

// textOf is the first of some members that is a text.
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
