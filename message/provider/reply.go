package provider

import (
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// Finish says why a model stopped, whatever the provider calls it.
type Finish string

// The ways to stop.
const (
	FinishStop      Finish = "stop"
	FinishLength    Finish = "length"
	FinishToolCalls Finish = "tool_calls"
	FinishFilter    Finish = "content_filter"
	FinishRefusal   Finish = "refusal"
	FinishPause     Finish = "pause" // the provider wants the turn sent back to continue
	FinishError     Finish = "error"
	FinishOther     Finish = "other"
	FinishNone      Finish = "" // it has not stopped yet, or gave no reason
)

// Usage counts tokens. Raw is what the provider said, verbatim.
type Usage struct {
	Prompt, Completion, Total int64
	Raw                       *value.Map
}

// Canonical returns the usage of conversation results.
func (u Usage) Canonical() *value.Map {
	return value.New().
		Set("prompt_tokens", value.Int(u.Prompt)).
		Set("completion_tokens", value.Int(u.Completion)).
		Set("total_tokens", value.Int(u.Total))
}

// Failure is an error of the provider.
type Failure struct {
	Provider  string
	Code      string
	Message   string
	Retryable bool
}

func (f *Failure) Error() string {
	if f.Code == "" {
		return f.Provider + ": " + f.Message
	}
	return f.Provider + ": " + f.Code + ": " + f.Message
}

// Envelope returns the failure as a message; raw is the provider's error, verbatim.
func (f *Failure) Envelope(raw any) message.Envelope {
	return message.Envelope{
		Type: message.TypeError, Role: message.RoleAssistant, Content: f.Message,
		Payload: value.New().
			Set("code", f.Code).
			Set("message", f.Message).
			Set("retryable", f.Retryable),
		Metadata: value.New().Set(f.Provider, value.New().Set("error", raw)),
	}
}

// Reply is what a provider answered. Texts come before calls. A provider's
// error is both a message of type error and Failure.
type Reply struct {
	Messages   []message.Envelope
	Finish     Finish
	FinishRaw  string // in the provider's words
	Usage      *Usage // nil: not given
	ResponseID string // provider_response_id
	Model      string
	Failure    *Failure
	Notes      []Note
}

// Fail adds a provider's error to the reply so far; raw is the error,
// verbatim.
func (r *Reply) Fail(f *Failure, raw any) {
	r.Messages = append(r.Messages, f.Envelope(raw))
	r.Finish, r.Failure = FinishError, f
}

// Canonical returns the reply as a map: messages, and the other known fields.
func (r Reply) Canonical() *value.Map {
	m := value.New().
		Set("messages", value.List(r.Messages)).
		Set("finish", string(r.Finish)).
		Set("finish_raw", r.FinishRaw)
	if r.Usage != nil {
		m.Set("usage", r.Usage.Canonical())
	}
	m.SetText("provider_response_id", r.ResponseID)
	m.SetText("model", r.Model)
	if len(r.Notes) > 0 {
		m.Set("notes", value.List(r.Notes))
	}
	return m
}
