package hosted

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/message"
	messages "github.com/parley-hub/parley/message/chat"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/view/branch"
)

// remembered is how many messages of a conversation a model gets.
const remembered = 256

// Producer answers the inputs of HPD's clients for a definition.
func (h *Host) Producer(a wire.StoredAgent) hpd.Producer {
	d := Definition{ID: a.ID, Config: a.Config}
	return hpd.ProducerFunc(func(ctx context.Context, run *hpd.Run, work hpd.Work) error {
		history, err := run.History(ctx, remembered)
		if err != nil {
			return err
		}
		out := &stream{run: run, wake: make(chan struct{}, 1)}
		done := make(chan error, 1)
		go func() { done <- out.pump(ctx) }()
		text, err := h.answer(ctx, d, work.RunConfig, spoken(history), sink{out.add, out.restart})
		out.end(text)
		if failed := <-done; err == nil {
			err = failed
		}
		return err
	})
}

// spoken returns the conversation of a branch, as a model gets it.
func spoken(history []branch.ChatMessage) []agent.Message {
	var list []agent.Message
	for i, m := range history {
		if i+1 < len(history) && strings.HasPrefix(history[i+1].MessageID, m.MessageID+"-") {
			continue // it was withdrawn and said again
		}
		role := agent.User
		if m.Role == "assistant" {
			role = agent.Assistant
		}
		for _, c := range m.Contents {
			if c.Type == branch.TextContent && c.Text != nil && *c.Text != "" {
				list = append(list, agent.Message{Role: role, Text: *c.Text})
			}
		}
	}
	return list
}

// stream publishes a reply while it arrives. The model never waits for it:
// what arrives while something is being stored is published with the next
// event.
type stream struct {
	run  *hpd.Run
	wake chan struct{}

	mu      sync.Mutex
	waiting string
	sent    int // bytes of the message that is open
	number  int // of the message, from 0: a retry begins another
	stale   bool
	over    bool
	whole   string
}

func (s *stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *stream) add(text string) {
	s.mu.Lock()
	s.waiting += text
	s.mu.Unlock()
	s.signal()
}

// restart withdraws what arrived: the request is made again.
func (s *stream) restart() {
	s.mu.Lock()
	s.waiting, s.stale = "", true
	s.mu.Unlock()
	s.signal()
}

func (s *stream) end(whole string) {
	s.mu.Lock()
	s.over, s.whole = true, whole
	s.mu.Unlock()
	s.signal()
}

// pump publishes until the reply has ended.
func (s *stream) pump(ctx context.Context) error {
	open := false
	for {
		s.mu.Lock()
		text, stale, over, whole := s.waiting, s.stale, s.over, s.whole
		s.waiting, s.stale = "", false
		s.mu.Unlock()
		var events []wire.Payload
		if stale && open {
			// What was shown is void: clients clear it, and a new message
			// begins.
			events = append(events, wire.ModelCallRetry{Attempt: int64(s.number + 2), ExceptionType: "ModelCallFailed", ErrorMessage: "The request is made again.", IsRetryable: true}, wire.TextMessageEnd{MessageID: s.id()})
			s.number++
			open, s.sent = false, 0
		}
		if over && text == "" && s.sent == 0 {
			text = whole // of a provider that does not stream
		}
		if text != "" {
			if !open {
				events = append(events, wire.TextMessageStart{MessageID: s.id(), Role: "assistant"})
				open = true
			}
			events = append(events, wire.TextDelta{MessageID: s.id(), Text: text})
			s.sent += len(text)
		}
		if over && open {
			events = append(events, wire.TextMessageEnd{MessageID: s.id()})
		}
		if len(events) > 0 {
			if err := s.run.Publish(ctx, events...); err != nil {
				return err
			}
		}
		if over {
			return nil
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *stream) id() string {
	if s.number == 0 {
		return "m-" + s.run.ID()
	}
	return fmt.Sprintf("m-%s-%d", s.run.ID(), s.number)
}

// Chat answers turns of chat sessions for a definition.
func (h *Host) Chat(a wire.StoredAgent) *Chat {
	return &Chat{host: h, definition: Definition{ID: a.ID, Config: a.Config}}
}

// Chat is a definition as chat sessions use it.
type Chat struct {
	host       *Host
	definition Definition
}

// Answer asks the definition's model.
func (c *Chat) Answer(ctx context.Context, turn messages.Turn, delta func(text string), reset func()) (any, error) {
	var said []agent.Message
	for _, m := range turn.Messages[max(0, len(turn.Messages)-remembered):] {
		if text, ok := m.Text(); ok && text != "" {
			role := agent.User
			if m.Role == message.RoleAssistant {
				role = agent.Assistant
			}
			said = append(said, agent.Message{Role: role, Text: text})
		}
	}
	text, err := c.host.answer(ctx, c.definition, nil, said, sink{delta, reset})
	if err != nil {
		return nil, err
	}
	row := value.New().Set("role", message.RoleAssistant).Set("content", text)
	return value.New().Set("messages", []any{row}), nil
}
