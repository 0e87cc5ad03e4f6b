// Package dispatch hands a message from an agent to an outbound channel:
// agents/dispatch-message.
//
// It is not idempotent, as the contract says: a caller that must not send twice
// keeps track of what it sent. It sends nothing itself.
package dispatch

import (
	"context"
	"errors"

	"github.com/parley-hub/parley/message/value"
)

// Codes of what dispatching refuses.
const (
	CodeNoHandler     = "agents_dispatch_message_no_handler"
	CodeInvalidResult = "agents_dispatch_message_invalid_result"
	CodeInvalidInput  = "agents_dispatch_message_invalid_input"
	CodeForbidden     = "agents_dispatch_message_forbidden"
)

// Reasons given to Failed for what has no code of a handler's own.
const (
	ReasonNoHandler     = "no_handler"
	ReasonInvalidResult = "invalid_result"
)

// Error is a refusal with its code.
type Error struct {
	Code string
	Text string
}

func (e *Error) Error() string { return e.Code + ": " + e.Text }

// Handler sends a message. It returns a map with sent, a boolean, and the
// strings channel and recipient.
type Handler func(ctx context.Context, input *value.Map) (any, error)

// Dispatcher passes messages to the first of its handlers.
type Dispatcher struct {
	// Handlers in the order of their registration; only the first is called.
	Handlers []Handler
	// Permitted decides who may send. Nil permits only administrators.
	Permitted func(ctx context.Context, input *value.Map) bool
	// Failed is called with the reason of every failure: no_handler,
	// invalid_result, or the error's code.
	Failed func(ctx context.Context, reason string, input *value.Map)
}

// Dispatch sends one message. Input needs the strings channel, recipient and
// message; attachments default to an empty list. An administrator needs no
// permission.
func (d Dispatcher) Dispatch(ctx context.Context, raw any, administrator bool) (*value.Map, error) {
	input, err := Input(raw)
	if err != nil {
		return nil, err
	}
	if !administrator && (d.Permitted == nil || !d.Permitted(ctx, input)) {
		return nil, &Error{CodeForbidden, "sending through a channel is for administrators and whom the host permits"}
	}
	if len(d.Handlers) == 0 {
		d.failed(ctx, ReasonNoHandler, input)
		return nil, &Error{CodeNoHandler, "no channel runtime is registered; register a handler"}
	}
	answer, err := d.Handlers[0](ctx, input)
	if err != nil {
		d.failed(ctx, codeOf(err), input)
		return nil, err
	}
	output, ok := value.Of(answer).(*value.Map)
	if !ok || !complete(output) {
		d.failed(ctx, ReasonInvalidResult, input)
		return nil, &Error{CodeInvalidResult, "the handler must return a map with sent (a boolean), channel and recipient (strings)"}
	}
	return output, nil
}

// complete reports whether an output has what its reader relies on.
func complete(output *value.Map) bool {
	_, sent := output.At("sent").(bool)
	_, channel := output.At("channel").(string)
	_, recipient := output.At("recipient").(string)
	return sent && channel && recipient
}

func (d Dispatcher) failed(ctx context.Context, reason string, input *value.Map) {
	if d.Failed != nil {
		d.Failed(ctx, reason, input)
	}
}

// codeOf returns the code an error carries, else its text.
func codeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return err.Error()
}

// Input checks and completes what is to be sent.
func Input(raw any) (*value.Map, error) {
	m, ok := value.Of(raw).(*value.Map)
	if !ok {
		return nil, &Error{CodeInvalidInput, "input must be an object"}
	}
	m = m.Clone()
	for _, key := range []string{"channel", "recipient", "message"} {
		if _, ok := m.At(key).(string); !ok {
			return nil, &Error{CodeInvalidInput, key + " must be a string"}
		}
	}
	if _, ok := m.At("conversation_id").(string); !ok && m.At("conversation_id") != nil {
		return nil, &Error{CodeInvalidInput, "conversation_id must be a string or null"}
	}
	if !m.Has("attachments") {
		m.Set("attachments", []any{})
	}
	if !value.IsContainer(m.At("attachments")) {
		return nil, &Error{CodeInvalidInput, "attachments must be a list"}
	}
	for _, key := range []string{"client_context", "metadata"} {
		if v, ok := m.Get(key); ok && !value.IsContainer(v) {
			return nil, &Error{CodeInvalidInput, key + " must be an object"}
		}
	}
	return m, nil
}
