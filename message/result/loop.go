package result

import (
	"math/big"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// FinalContent returns the answer of a conversation: the text of the last
// message of the assistant that has text and is not a tool call.
func FinalContent(messages []message.Envelope) string {
	for i := len(messages) - 1; i >= 0; i-- {
		e := messages[i]
		if text, _ := e.Text(); text != "" && e.Role == message.RoleAssistant && e.Type != message.TypeToolCall {
			return text
		}
	}
	return ""
}

// NewUsage returns the usage of a conversation before its first turn.
func NewUsage() *value.Map {
	return value.New().
		Set("prompt_tokens", value.Int(0)).
		Set("completion_tokens", value.Int(0)).
		Set("total_tokens", value.Int(0))
}

// AddUsage adds a turn's usage: numbers are summed, other values replaced.
func AddUsage(total, turn *value.Map) *value.Map {
	sum := total.Clone()
	for key, v := range turn.All() {
		if n, ok := value.Of(v).(value.Number); ok {
			if before, ok := sum.At(key).(value.Number); ok {
				v = add(before, n)
			}
		}
		sum.Set(key, v)
	}
	return sum
}

func add(a, b value.Number) value.Number {
	i, iok := a.Int64()
	j, jok := b.Int64()
	if !iok || !jok {
		return value.Float(a.Float64() + b.Float64())
	}
	return value.Number(new(big.Int).Add(big.NewInt(i), big.NewInt(j)).String())
}

// What an interruption asks for.
const (
	InterruptCancel   = "cancel"
	InterruptRedirect = "redirect"
	InterruptMessage  = "message"
)

// InterruptAction returns what a message that interrupts a run asks for. Only
// cancel stops it.
func InterruptAction(e message.Envelope) string {
	v := e.Metadata.At("interrupt_action")
	if v == nil {
		v = e.Metadata.At("action")
	}
	switch action := word(v); action {
	case InterruptCancel, InterruptRedirect:
		return action
	default:
		return InterruptMessage
	}
}
