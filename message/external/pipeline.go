package external

import (
	"context"
	"errors"

	"github.com/parley-hub/parley/message/value"
)

// Codes of what a channel's pipeline refuses.
const (
	CodeSilentSkip        = "silent_skip"
	CodeEmptyMessage      = "empty_message"
	CodeChatUnavailable   = "chat_ability_unavailable"
	CodeChatInvalidResult = "chat_ability_invalid_result"
)

// Texts that a person gets when there is no answer.
const (
	TextNoReply = "Sorry, I could not generate a response."
	TextFailed  = "Sorry, I could not process your message right now."
)

// Refusal is why a message was not handled.
type Refusal struct {
	Code string
	Text string
}

func (r *Refusal) Error() string {
	if r.Text == "" {
		return r.Code
	}
	return r.Code + ": " + r.Text
}

// Channel is what a transport provides to the pipeline. All but Chat and
// Deliver may be nil.
type Channel struct {
	Agent    string
	Sessions *Sessions
	// Validate refuses a message. A Refusal with the code silent_skip drops it
	// without a reply; any other is sent to the sender.
	Validate func(ctx context.Context, m Message) error
	Started  func(ctx context.Context, m Message)
	Ended    func(ctx context.Context, m Message)
	Complete func(ctx context.Context, m Message, result *value.Map)
	// Chat runs agents/chat.
	Chat func(ctx context.Context, input *value.Map) (any, error)
	// Deliver sends a reply, Fail an error text.
	Deliver func(ctx context.Context, m Message, reply string) error
	Fail    func(ctx context.Context, m Message, text string) error
}

// Handle takes one message through the channel: validate, find its session,
// run the chat, keep the session, deliver. The session is kept before the
// replies are sent, so that a transport that fails does not lose it.
func (c Channel) Handle(ctx context.Context, m Message) error {
	if c.Validate != nil {
		if err := c.Validate(ctx, m); err != nil {
			return c.refuse(ctx, m, err)
		}
	}
	if m.Text == "" {
		return &Refusal{Code: CodeEmptyMessage}
	}
	if c.Chat == nil {
		return c.fail(ctx, m, &Refusal{Code: CodeChatUnavailable})
	}
	session := c.session(m)
	if c.Started != nil {
		c.Started(ctx, m)
	}
	raw, err := c.Chat(ctx, m.ChatInput(c.Agent, session))
	if c.Ended != nil {
		c.Ended(ctx, m)
	}
	if err != nil {
		return c.fail(ctx, m, err)
	}
	result, ok := value.AsMap(value.Of(raw))
	if !ok {
		return c.fail(ctx, m, &Refusal{Code: CodeChatInvalidResult})
	}
	if id := trimmed(result.At("session_id")); id != "" && id != session && c.Sessions != nil && m.ConversationID != "" {
		c.Sessions.Set(m.ConnectorID, m.ConversationID, c.Agent, id)
	}
	if err := c.deliver(ctx, m, Replies(result)); err != nil {
		return err
	}
	if c.Complete != nil {
		c.Complete(ctx, m, result)
	}
	return nil
}

func (c Channel) session(m Message) string {
	if c.Sessions == nil || m.ConversationID == "" {
		return ""
	}
	return c.Sessions.Get(m.ConnectorID, m.ConversationID, c.Agent)
}

func (c Channel) deliver(ctx context.Context, m Message, replies []string) error {
	if len(replies) == 0 {
		return c.tell(ctx, m, TextNoReply)
	}
	for _, reply := range replies {
		if err := c.Deliver(ctx, m, reply); err != nil {
			return err
		}
	}
	return nil
}

func (c Channel) refuse(ctx context.Context, m Message, err error) error {
	if refusal, ok := errors.AsType[*Refusal](err); ok && refusal.Code == CodeSilentSkip {
		return err
	}
	return c.fail(ctx, m, err)
}

// fail sends the sender an error text: the error's own if it has one.
func (c Channel) fail(ctx context.Context, m Message, err error) error {
	text := err.Error()
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		text = refusal.Text
	}
	if value.Trim(text) == "" {
		text = TextFailed
	}
	return errors.Join(err, c.tell(ctx, m, text))
}

func (c Channel) tell(ctx context.Context, m Message, text string) error {
	if c.Fail == nil {
		return nil
	}
	return c.Fail(ctx, m, text)
}

// Replies returns the texts a chat's result answers with: its reply, else what
// the assistant's messages say.
func Replies(result *value.Map) []string {
	if reply := trimmed(result.At("reply")); reply != "" {
		return []string{reply}
	}
	var replies []string
	messages, _ := value.Values(result.At("messages"))
	for _, m := range messages {
		row := value.MapOrEmpty(m)
		if row.At("role") != "assistant" {
			continue
		}
		if text := trimmed(row.At("content")); text != "" {
			replies = append(replies, text)
		}
	}
	return replies
}
