package chat

import (
	"slices"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// CheckInput refuses what Chat would refuse for its messages. A host that makes the
// session itself asks before it does.
func CheckInput(rawInput any) error {
	_, err := turnMessages(value.MapOrEmpty(value.Of(rawInput)))
	return err
}

// turnMessages returns what the input adds to the conversation: the user's
// text, then typed continuations, which are tool calls and results in pairs.
func turnMessages(input *value.Map) ([]message.Envelope, error) {
	var messages []message.Envelope
	text, _ := input.At("message").(string)
	if text = value.Trim(text); text != "" {
		e, err := message.Text(message.RoleUser, text, nil)
		if err != nil {
			return nil, wrap(CodeInvalidMessages, err)
		}
		messages = append(messages, e)
	}
	typed, err := typedMessages(input.At("input_messages"))
	if err != nil {
		return nil, err
	}
	if messages = append(messages, typed...); len(messages) == 0 {
		return nil, refuse(CodeEmptyMessage, "message or input_messages must contain at least one message")
	}
	return messages, nil
}

func typedMessages(raw any) ([]message.Envelope, error) {
	if value.Len(raw) == 0 {
		return nil, nil
	}
	typed, err := message.NormalizeAll(raw)
	if err != nil {
		return nil, wrap(CodeInvalidMessages, err)
	}
	if slices.ContainsFunc(typed, func(e message.Envelope) bool {
		return e.Type != message.TypeToolCall && e.Type != message.TypeToolResult
	}) {
		return nil, refuse(CodeInvalidType, "input_messages may hold tool calls and tool results only")
	}
	if len(message.OrphansOf(typed)) > 0 {
		return nil, refuse(CodeUnpaired, "every tool call in input_messages needs its result, and the reverse")
	}
	return typed, nil
}

// history returns the earlier conversation of a caller without a store: texts
// of user and assistant only.
func history(raw any) []message.Envelope {
	var messages []message.Envelope
	rows, _ := value.Values(raw)
	for _, row := range rows {
		m := value.MapOrEmpty(row)
		role, _ := m.At("role").(string)
		content, _ := m.At("content").(string)
		if (role != message.RoleUser && role != message.RoleAssistant) || value.Trim(content) == "" {
			continue
		}
		if e, err := message.Text(role, content, nil); err == nil {
			messages = append(messages, e)
		}
	}
	return messages
}
