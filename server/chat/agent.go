package chat

import (
	"context"
	"errors"
	"sync"

	"github.com/go-json-experiment/json"

	adapter "github.com/parley-hub/parley/adapter/transcript"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/message"
	messages "github.com/parley-hub/parley/message/chat"
	"github.com/parley-hub/parley/message/value"
)

// Agent returns the name by which a runner is found, as a session stores it.
func (s *Service) Agent(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", fault.New(fault.Invalid, "say whom you talk to: `agent` is the name or id of an agent")
	}
	if s.cfg.Hosted != nil {
		if _, ok, err := s.cfg.Hosted(ctx, name); err != nil || ok {
			return name, err
		}
	}
	p, err := s.hub.Agent(name)
	if err != nil {
		return "", err
	}
	return p.Passport.Name, nil
}

// answer returns the answer of the turn's runner.
func (s *Service) answer(ctx context.Context, c *claims, turn messages.Turn) (any, error) {
	live := &liveText{service: s, channel: c.channel, run: turn.RunID}
	answer, err := s.ask(ctx, c, turn, live)
	if err != nil && ctx.Err() != nil {
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			return nil, cause
		}
	}
	return answer, err
}

func (s *Service) ask(ctx context.Context, c *claims, turn messages.Turn, live *liveText) (any, error) {
	if s.cfg.Hosted != nil {
		if hosted, ok, err := s.cfg.Hosted(ctx, turn.Agent); err != nil {
			return nil, err
		} else if ok {
			return hosted.Answer(ctx, turn, func(text string) { live.add(ctx, text) }, func() { live.reset(ctx) })
		}
	}
	p, err := s.hub.Agent(turn.Agent)
	if err != nil {
		return nil, err
	}
	conversation, err := s.talk(ctx, c, turn, p.ID())
	if err != nil {
		return nil, err
	}
	return s.exchange(ctx, turn, conversation, p.ID(), live)
}

// talk finds the conversation of a session with its agent, or opens one.
func (s *Service) talk(ctx context.Context, c *claims, turn messages.Turn, agentID string) (string, error) {
	state, err := s.store.state(ctx, c.channel)
	if err != nil {
		return "", err
	}
	m, err := s.hub.Channel(ctx, c.channel)
	if err != nil {
		return "", err
	}
	home := hub.HomeOf(c.channel)
	for c.talk = state.Talk; ; c.talk++ {
		found, err := s.hub.Named(ctx, home, talkType, talkName(turn.SessionID, c.talk))
		if hub.Deleted(err) {
			opened, err := s.hub.Open(ctx, hub.Opening{
				Creator: m.Creator, Type: talkType, Participants: []string{m.Creator, agentID}, Home: home, Name: talkName(turn.SessionID, c.talk),
				Intent: "chat", Labels: map[string]string{"chat.session": turn.SessionID},
			})
			if err != nil {
				return "", err
			}
			return opened.ID, nil
		}
		if err != nil {
			return "", err
		}
		with, err := s.hub.Channel(ctx, found)
		if err == nil && with.State == channel.Active && with.Has(agentID) {
			return found, nil
		}
		if err == nil && !with.State.Terminal() {
			// It waits for an agent of an earlier run, or belongs to another.
			if _, err = s.hub.CloseChannel(ctx, found, "superseded"); err != nil && !hub.Deleted(err) {
				return "", err
			}
		}
	}
}

// exchange posts the last message of the turn to the agent, exactly once even after a
// restart, and waits for the agent's answer.
func (s *Service) exchange(ctx context.Context, turn messages.Turn, conversation, agentID string, live *liveText) (any, error) {
	m, err := s.hub.Channel(ctx, conversation)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(map[string]string{"text": lastText(turn.Messages)})
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the message is not text: %v", err)
	}
	failed, forget := s.failed.of(conversation)
	defer forget()
	// It follows from before the post, so that no delta is missed.
	from, err := s.hub.Position(ctx, conversation)
	if err != nil {
		return nil, err
	}
	f, err := s.hub.Follow(ctx, conversation, hub.FollowOptions{After: from})
	if err != nil {
		return nil, err
	}
	defer func() { f.Close() }()
	p := s.hub.Admit(ctx, &envelope.Envelope{
		Channel: conversation, Sender: m.Creator, Type: envelope.TypeText, Data: data, Key: "chat/" + turn.RunID, Priority: envelope.Normal,
	}, nil)
	said, err := p.Wait(ctx)
	if err != nil {
		return nil, err
	}
	if p.Seq() <= from.Seq { // posted before a restart: the answer may be there
		f.Close()
		at := journal.Position{Epoch: from.Epoch, Incarnation: from.Incarnation, Seq: p.Seq()}
		if f, err = s.hub.Follow(ctx, conversation, hub.FollowOptions{After: at}); err != nil {
			return nil, err
		}
	}
	for {
		ev, wake, err := f.TryNext(ctx)
		if err != nil {
			return nil, err
		}
		if wake != nil {
			select {
			case <-wake:
				continue
			case why := <-failed:
				return nil, fault.New(fault.Unavailable, "%s failed: %s", turn.Agent, why)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		e := ev.Envelope
		switch {
		case e.Type == envelope.TypeClosed || e.Type == envelope.TypeExpired:
			return nil, fault.New(fault.Unavailable, "%s ended the conversation", turn.Agent)
		case e.Sender != agentID:
		case ev.Live && e.Type == envelope.TypeDelta:
			live.forward(ctx, e.Data)
		case !ev.Live && e.Type == envelope.TypeText && e.Seq > p.Seq() && (e.Causation == "" || e.Causation == said):
			var answer struct {
				Text string `json:"text"`
			}
			if err := json.Unmarshal(e.Data, &answer); err != nil {
				return nil, fault.Wrap(fault.Protocol, err, "the answer of %s is not a text: %v", turn.Agent, err)
			}
			return assistant(turn, answer.Text, value.New().Set("speaker", turn.Agent).Set("channel_id", conversation).Set("envelope_id", e.ID))
		}
	}
}

// lastText returns the text for the agent: it has the rest in its conversation.
func lastText(list []message.Envelope) string {
	for i := len(list) - 1; i >= 0; i-- {
		if text, ok := list[i].Text(); ok && list[i].Role == message.RoleUser {
			return text
		}
	}
	return ""
}

// liveText shows followers of a session the text before its answer is stored.
type liveText struct {
	service      *Service
	channel, run string
	size         int // bytes shown since the last reset
}

// Delta is a part of an answer that is not stored.
type Delta struct {
	Run string `json:"run_id"`
	// At is how many bytes of the answer came before, so that a reader who missed
	// some notices.
	At   int    `json:"at"`
	Text string `json:"text"`
}

func (l *liveText) add(ctx context.Context, text string) {
	if text == "" {
		return
	}
	l.send(ctx, adapter.TypeDelta, Delta{Run: l.run, At: l.size, Text: text})
	l.size += len(text)
}

// reset withdraws what was shown: the answer begins again.
func (l *liveText) reset(ctx context.Context) {
	if l.size > 0 {
		l.send(ctx, adapter.TypeReset, Delta{Run: l.run})
	}
	l.size = 0
}

// forward shows an agent's text as it arrives.
func (l *liveText) forward(ctx context.Context, data []byte) {
	var d agent.Delta
	if json.Unmarshal(data, &d) != nil {
		return
	}
	if d.At < l.size || d.Reset {
		l.reset(ctx)
	}
	l.size = d.At
	l.add(ctx, d.Text)
}

// send shows something live, without waiting.
func (l *liveText) send(ctx context.Context, kind string, d Delta) {
	data, err := json.Marshal(d)
	if err != nil {
		return
	}
	m, err := l.service.hub.Channel(ctx, l.channel)
	if err != nil {
		return
	}
	e := record(m.Creator, kind, data, "")
	e.Channel = l.channel
	_ = l.service.hub.SendLive(ctx, e, nil) // a live event that fails is lost, as it is for readers that are not connected
}

// failures informs runs that an agent could not answer.
type failures struct {
	hub.NoopListener
	mu      sync.Mutex
	waiting map[string]chan string // by conversation
}

// of returns a channel that receives why an agent failed in a conversation.
func (f *failures) of(conversation string) (<-chan string, func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == nil {
		f.waiting = map[string]chan string{}
	}
	why := make(chan string, 1)
	f.waiting[conversation] = why
	return why, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.waiting, conversation)
	}
}

// TurnFailed implements hub.Listener.
func (f *failures) TurnFailed(channelID, _, _, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case f.waiting[channelID] <- why:
	default:
	}
}
