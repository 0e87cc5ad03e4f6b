package view

import (
	"cmp"
	"strconv"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/view/branch"
)

// branchMessages adds the messages of a branch, whose events are pieces of
// them. Reasoning is left out, because it is not said to anybody.
func (p *projector) branchMessages() {
	names := map[string]string{} // of tools, by call
	for _, m := range p.branch.Messages() {
		for i, c := range m.Contents {
			out := message.Envelope{ID: m.MessageID, Role: m.Role, Payload: value.New(), Metadata: value.New()}
			if i > 0 {
				out.ID += "/" + strconv.Itoa(i)
			}
			out.Metadata.Set("message_id", m.MessageID)
			if m.AuthorName != nil {
				out.Metadata.Set("name", *m.AuthorName)
			}
			if !m.CreatedAt.IsZero() {
				out.CreatedAt = message.FormatTime(m.CreatedAt)
			}
			switch c.Type {
			case branch.TextContent:
				p.turn++
				out.Type, out.Content = message.TypeText, text(c.Text)
			case branch.FunctionCallContent:
				names[text(c.CallID)] = text(c.Name)
				out.Type, out.Role, out.Content = message.TypeToolCall, message.RoleAssistant, ""
				out.Payload.Set("tool_name", text(c.Name)).Set("parameters", orEmpty(object(c.Arguments))).Set("turn", value.Int(max(1, p.turn)))
				out.Metadata.Set("tool_call_id", text(c.CallID))
			case branch.FunctionResultContent:
				out.Type, out.Role, out.Content = message.TypeToolResult, message.RoleUser, resultText(c.Result)
				out.Payload.Set("success", true).Set("tool_name", names[text(c.CallID)])
				if v, err := value.Decode(c.Result); err == nil {
					out.Payload.Set("result", v)
				}
				out.Metadata.Set("tool_call_id", text(c.CallID))
			case branch.ErrorContent:
				out.Type, out.Content = message.TypeText, "[Error] "+text(c.Message)
			case branch.ReasoningContent:
				continue
			default:
				out.Type, out.Content = message.TypeText, channel.Attachment(c.Type, text(c.MediaType), text(c.URI))
			}
			p.out = append(p.out, out)
		}
	}
}

func text(s *string) string { return *cmp.Or(s, new(string)) }

func orEmpty(m *value.Map) *value.Map {
	if m == nil {
		return value.New()
	}
	return m
}

// resultText returns a result as a model reads it.
func resultText(result branch.Raw) string {
	v, err := value.Decode(result)
	if err != nil {
		return ""
	}
	if s, ok := v.(string); ok {
		return s
	}
	return string(result)
}
