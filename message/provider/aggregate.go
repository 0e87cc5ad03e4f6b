package provider

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// What a delta is a fragment of: the payload's kind.
const (
	DeltaText      = "text"
	DeltaReasoning = "reasoning"
	DeltaRefusal   = "refusal"
	DeltaToolCall  = "tool_call"
)

// Delta returns a fragment of a message that is still being made. Its text is
// the content; payload.index says which message of the reply it belongs to. A
// fragment of a call has the arguments' text as content; the first one names
// the tool.
func Delta(kind string, index int, text, toolName, callID string) message.Envelope {
	payload := value.New().Set("index", value.Int(index)).Set("kind", kind)
	metadata := value.New()
	payload.SetText("tool_name", toolName)
	metadata.SetText("tool_call_id", callID)
	return message.Envelope{
		Type: message.TypeDelta, Role: message.RoleAssistant, Content: text, Payload: payload, Metadata: metadata,
	}
}

type gathering struct {
	kind, tool, id string
	text           strings.Builder
}

// Aggregate makes the messages that deltas are fragments of, texts before
// calls, so that a transcript can be sent again. Other messages keep their
// place; those that follow deltas come after the messages made of these. A call
// whose arguments are not a JSON object keeps their text in the payload as
// arguments_text.
func Aggregate(messages []message.Envelope, turn int) []message.Envelope {
	kept := make([]message.Envelope, 0, len(messages))
	var order []*gathering
	open := map[string]*gathering{}
	flush := func() {
		kept = append(kept, gathered(order, turn)...)
		order = nil
		clear(open)
	}
	for _, e := range messages {
		if e.Type != message.TypeDelta {
			flush()
			kept = append(kept, e)
			continue
		}
		kind, _ := e.Payload.At("kind").(string)
		kind = cmp.Or(kind, DeltaText)
		key := kind + "/" + value.Text(e.Payload.At("index"))
		g := open[key]
		if g == nil {
			g = &gathering{kind: kind}
			open[key] = g
			order = append(order, g)
		}
		if name := e.ToolName(); name != "" {
			g.tool = name
		}
		if id := e.ToolCallID(); id != "" {
			g.id = id
		}
		text, _ := e.Text()
		g.text.WriteString(text)
	}
	flush()
	return kept
}

func gathered(order []*gathering, turn int) []message.Envelope {
	var texts, calls []message.Envelope
	var reasoning []string
	for _, g := range order {
		switch g.kind {
		case DeltaToolCall:
			calls = append(calls, g.call(turn, len(calls)+1))
		case DeltaReasoning:
			reasoning = append(reasoning, g.text.String())
		default:
			if g.text.Len() == 0 {
				continue
			}
			e := message.Envelope{
				Type: message.TypeText, Role: message.RoleAssistant, Content: g.text.String(),
				Payload: value.New(), Metadata: value.New(),
			}
			if g.kind == DeltaRefusal {
				e.Metadata.Set("refusal", true)
			}
			texts = append(texts, e)
		}
	}
	made := append(texts, calls...)
	if len(reasoning) > 0 && len(made) > 0 {
		made[0].Metadata.Set("reasoning", strings.Join(reasoning, "\n\n"))
	}
	return made
}

func (g *gathering) call(turn, position int) message.Envelope {
	text := g.text.String()
	parameters, ok := ParseArguments(text)
	payload := value.New().
		Set("tool_name", g.tool).
		Set("parameters", parameters).
		Set("turn", value.Int(max(1, turn)))
	if !ok {
		payload.Set("arguments_text", text)
	}
	id := g.id
	if id == "" {
		id = "tool-call-" + strconv.Itoa(max(1, turn)) + "-" + strconv.Itoa(position)
	}
	return message.Envelope{
		Type: message.TypeToolCall, Role: message.RoleAssistant, Content: "",
		Payload: payload, Metadata: value.New().Set("tool_call_id", id),
	}
}

// ParseArguments reads a call's arguments from their JSON text. No text is no
// arguments; arguments that are not an object are not ok and are read as none.
func ParseArguments(text string) (*value.Map, bool) {
	if value.Trim(text) == "" {
		return value.New(), true
	}
	v, err := value.Decode([]byte(text))
	if err != nil {
		return value.New(), false
	}
	m, ok := v.(*value.Map)
	if !ok {
		return value.New(), false
	}
	return m, true
}
