package branch

import (
	"cmp"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// Draft is an event that is not in a log yet.
type Draft struct {
	Type string
	Data []byte
}

// Expand turns a message that was not streamed into its events, all with the
// message's id: a user's input, a fork's copy, a replacement of a compaction. Text
// is written as text events only; as CONTENT_ADDED it would be projected twice.
func Expand(m *ChatMessage) ([]Draft, error) {
	if m.MessageID == "" {
		return nil, fault.New(fault.Invalid, "a message needs an id before it is stored")
	}
	x := expander{id: m.MessageID, role: m.Role}
	b := x.payload(MessageStarted)
	b.Key("role").String(m.Role)
	if m.AuthorName != nil {
		b.Key("authorName").String(*m.AuthorName)
	}
	if !m.CreatedAt.IsZero() {
		b.Key("createdAt").String(m.CreatedAt.UTC().Format(timeFormat))
	}
	if m.ClientInputID != nil {
		b.Key("clientInputId").String(*m.ClientInputID)
	}
	if len(m.Properties) > 0 {
		b.Key("additionalProperties").Object(m.Properties)
	}
	x.put(MessageStarted, b)
	for _, c := range mergeText(m.Contents) {
		x.content(&c)
	}
	x.put(MessageCompleted, x.payload(MessageCompleted))
	return x.out, x.err
}

// timeFormat is how times are written in payloads.
const timeFormat = "2006-01-02T15:04:05.9999999Z07:00"

// mergeText joins texts that follow each other.
func mergeText(contents []Content) []Content {
	merged := make([]Content, 0, len(contents))
	for _, c := range contents {
		last := len(merged) - 1
		if last >= 0 && c.Type == TextContent && merged[last].Type == TextContent {
			merged[last] = Text(merged[last].text() + c.text())
			continue
		}
		merged = append(merged, c)
	}
	return merged
}

type expander struct {
	id, role string
	out      []Draft
	err      error
}

// payload begins a payload; those of calls have no message id.
func (x *expander) payload(eventType string) *jsonbuf.Buffer {
	b := (&jsonbuf.Buffer{}).Open('{')
	switch eventType {
	case ToolCallArgs, ToolCallEnd:
		return b
	}
	return b.Key("messageId").String(x.id)
}

func (x *expander) put(eventType string, b *jsonbuf.Buffer) {
	data, err := b.Close('}').Result()
	if err != nil && x.err == nil {
		x.err = fault.Wrap(fault.Invalid, err, "%s cannot be written: %v", eventType, err)
	}
	x.out = append(x.out, Draft{eventType, data})
}

func (x *expander) content(c *Content) {
	switch c.Type {
	case TextContent:
		x.stream(TextMessageStart, TextDelta, TextMessageEnd, c)
	case ReasoningContent:
		x.stream(ReasoningMessageStart, ReasoningDelta, ReasoningMessageEnd, c)
	case FunctionCallContent:
		x.call(c)
	case FunctionResultContent:
		x.result(c)
	default:
		raw, err := json.Marshal(c)
		if err != nil && x.err == nil {
			x.err = fault.Wrap(fault.Invalid, err, "a content cannot be written: %v", err)
		}
		x.put(ContentAdded, x.payload(ContentAdded).Key("content").Object(raw))
	}
}

func (x *expander) stream(start, delta, end string, c *Content) {
	x.put(start, x.payload(start).Key("role").String(x.role))
	if c.text() != "" || c.ProtectedData != nil {
		b := x.payload(delta).Key("text").String(c.text())
		if c.ProtectedData != nil {
			b.Key("protectedData").String(*c.ProtectedData)
		}
		x.put(delta, b)
	}
	x.put(end, x.payload(end))
}

func (x *expander) call(c *Content) {
	if c.event != nil {
		x.out = append(x.out, Draft{ToolCallStart, c.event})
	} else {
		b := x.payload(ToolCallStart).Key("callId").String(deref(c.CallID)).Key("name").String(deref(c.Name))
		x.put(ToolCallStart, b)
	}
	args := "{}"
	switch {
	case c.args != nil:
		args = *c.args
	case len(c.Arguments) > 0:
		args = string(c.Arguments)
	}
	x.put(ToolCallArgs, x.payload(ToolCallArgs).Key("callId").String(deref(c.CallID)).Key("argsJson").String(args))
	x.put(ToolCallEnd, x.payload(ToolCallEnd).Key("callId").String(deref(c.CallID)))
}

func (x *expander) result(c *Content) {
	if c.event != nil {
		x.out = append(x.out, Draft{ToolCallResult, c.event})
		return
	}
	b := x.payload(ToolCallResult).Key("callId").String(deref(c.CallID)).Key("result").Open('{')
	switch {
	case len(c.Result) == 0:
	case c.Result.Kind() == '"':
		b.Key("text").Value(c.Result).Key("json").Value(c.Result)
	default:
		b.Key("text").String(string(c.Result)).Key("json").Value(c.Result)
	}
	x.put(ToolCallResult, b.Close('}'))
}

func deref(s *string) string { return *cmp.Or(s, new(string)) }
