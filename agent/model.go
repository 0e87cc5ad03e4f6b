package agent

import (
	"context"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/view"
)

// Model produces answers. It is a language model behind a provider's API, or a
// script.
type Model interface {
	Respond(ctx context.Context, p *Prompt) (*Response, error)
}

// ModelFunc is a model made of a function.
type ModelFunc func(ctx context.Context, p *Prompt) (*Response, error)

// Respond calls the function.
func (f ModelFunc) Respond(ctx context.Context, p *Prompt) (*Response, error) { return f(ctx, p) }

// Prompt is the input of a model.
type Prompt struct {
	System string
	// Messages are the conversation so far, the new input last, followed by
	// this round's calls and their results once there are any.
	Messages []Message
	Tools    []*Tool
	// Turn is the turn that the round belongs to. It must not be changed.
	Turn *Turn
}

// Input returns the text that the round began with.
func (p *Prompt) Input() string {
	for i := len(p.Messages) - 1; i >= 0; i-- {
		if m := p.Messages[i]; m.Role == User {
			return m.Text
		}
	}
	return ""
}

// Role is whose message it is, from the model's point of view.
type Role string

// Roles of messages.
const (
	User       Role = "user"
	Assistant  Role = "assistant"
	ToolResult Role = "tool"
)

// Message is one entry of a prompt.
type Message struct {
	Role    Role
	Text    string
	Calls   []turn.Call // of an assistant's message
	CallID  string      // of a tool's result
	Content any         // of an application's own view, where there is no text
	// Verbatim is what the model gave with Response.Verbatim.
	Verbatim any
}

// Response is what a model said. With calls, it is asked again once they have
// run; without, Text is the answer of the round.
type Response struct {
	Text  string
	Calls []turn.Call
	// Verbatim is for the model itself: when the model is asked again in the
	// same round, the message of this response contains it.
	Verbatim any
}

// messages turns a projection into a prompt's messages.
func messages(events []view.Event) []Message {
	list := make([]Message, 0, len(events)+1)
	for _, e := range events {
		kind, text := e.Message()
		role := User
		if kind == view.Assistant {
			role = Assistant
		}
		list = append(list, Message{Role: role, Text: text, Content: e.Content})
	}
	return list
}
