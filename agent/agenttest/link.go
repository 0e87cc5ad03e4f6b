package agenttest

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// Link is one identity's link to the network.
type Link struct {
	net  *Network
	peer *agent.Peer

	// Guarded by the network's lock.
	unread  []*envelope.Envelope
	unacked []*envelope.Envelope
	acks    []string
	nacks   []string
	closed  bool
	faults  map[string]error
}

var _ agent.Link = (*Link)(nil)

// Fail makes an operation, by its method's name, return an error; nil makes it
// work again.
func (l *Link) Fail(operation string, err error) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	if l.faults == nil {
		l.faults = map[string]error{}
	}
	l.faults[operation] = err
}

// Redeliver delivers again all that was delivered and not acked, as a hub does
// when a connection comes back.
func (l *Link) Redeliver() {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	l.unread = append(slices.Clone(l.unacked), l.unread...)
	l.unacked = nil
	l.net.touch()
}

// Repeat delivers an envelope of a channel once more, acked or not.
func (l *Link) Repeat(e *envelope.Envelope) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	l.unread = append(l.unread, e)
	l.net.touch()
}

// Cut ends the link: Receive returns io.EOF once everything was read.
func (l *Link) Cut() {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	l.closed = true
	l.net.touch()
}

// Receipts returns the ids acked and nacked so far; a nack carries its reason.
func (l *Link) Receipts() (acks, nacks []string) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	return slices.Clone(l.acks), slices.Clone(l.nacks)
}

// Idle reports whether everything delivered has been answered.
func (l *Link) Idle() bool {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	return len(l.unread) == 0 && len(l.unacked) == 0
}

// Self implements agent.Link.
func (l *Link) Self() agent.Identity { return agent.Identity{ID: l.peer.ID, Name: l.peer.Name} }

// Receive implements agent.Link.
func (l *Link) Receive(ctx context.Context) (*agent.Delivery, error) {
	for {
		l.net.mu.Lock()
		if len(l.unread) > 0 {
			e := l.unread[0]
			l.unread = l.unread[1:]
			l.unacked = append(l.unacked, e)
			l.net.mu.Unlock()
			return l.delivery(e), nil
		}
		closed, changed := l.closed, l.net.changed
		l.net.mu.Unlock()
		if closed {
			return nil, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (l *Link) delivery(e *envelope.Envelope) *agent.Delivery {
	answer := func(receipt func()) error {
		l.net.mu.Lock()
		defer l.net.mu.Unlock()
		if i := slices.Index(l.unacked, e); i >= 0 {
			l.unacked = slices.Delete(l.unacked, i, i+1)
		}
		receipt()
		l.net.touch()
		return nil
	}
	return &agent.Delivery{
		Envelope: e.Clone(),
		Ack:      func(context.Context) error { return answer(func() { l.acks = append(l.acks, e.ID) }) },
		Nack: func(_ context.Context, reason string) error {
			return answer(func() { l.nacks = append(l.nacks, e.ID+": "+reason) })
		},
	}
}

// locked runs one operation under the network's lock, unless it is to fail.
func locked[T any](l *Link, operation string, run func() (T, error)) (T, error) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	if err := l.faults[operation]; err != nil {
		var none T
		return none, err
	}
	return run()
}

func (l *Link) failing(operation string) error {
	_, err := locked(l, operation, func() (struct{}, error) { return struct{}{}, nil })
	return err
}

// Channel implements agent.Link.
func (l *Link) Channel(_ context.Context, id string) (*channel.Metadata, error) {
	return locked(l, "Channel", func() (*channel.Metadata, error) {
		r, err := l.net.room(id)
		if err != nil {
			return nil, err
		}
		return r.meta.Clone(), nil
	})
}

// ListChannels implements agent.Link.
func (l *Link) ListChannels(_ context.Context, limit int) ([]*channel.Metadata, error) {
	return locked(l, "ListChannels", func() ([]*channel.Metadata, error) {
		var list []*channel.Metadata
		for _, r := range l.net.rooms {
			if r.meta.Has(l.peer.ID) && len(list) < limit {
				list = append(list, r.meta.Clone())
			}
		}
		return list, nil
	})
}

// OpenChannel implements agent.Link.
func (l *Link) OpenChannel(ctx context.Context, o agent.Opening) (*channel.Metadata, error) {
	if err := l.failing("OpenChannel"); err != nil {
		return nil, err
	}
	r, err := l.net.open(l.peer.ID, o)
	if err != nil {
		return nil, err
	}
	var m *channel.Metadata
	err = l.net.Wait(ctx, func() bool {
		l.net.mu.Lock()
		defer l.net.mu.Unlock()
		m = r.meta.Clone()
		return m.State != channel.Pending
	})
	if err == nil && m.State.Terminal() {
		err = fault.New(fault.Protocol, "channel closed during handshake: %s", m.CloseReason)
	}
	return m, err
}

// CloseChannel implements agent.Link.
func (l *Link) CloseChannel(_ context.Context, id, reason string) (*channel.Metadata, error) {
	return locked(l, "CloseChannel", func() (*channel.Metadata, error) {
		r, err := l.net.room(id)
		if err != nil {
			return nil, err
		}
		l.net.end(r, reason)
		return r.meta.Clone(), nil
	})
}

// Log implements agent.Link.
func (l *Link) Log(_ context.Context, channelID string) ([]*envelope.Envelope, error) {
	return locked(l, "Log", func() ([]*envelope.Envelope, error) {
		r, err := l.net.room(channelID)
		if err != nil {
			return nil, err
		}
		return slices.Clone(r.log), nil
	})
}

// Answer implements agent.Link.
func (l *Link) Answer(_ context.Context, channelID, cause string) (*envelope.Envelope, error) {
	return locked(l, "Answer", func() (*envelope.Envelope, error) {
		r, err := l.net.room(channelID)
		if err != nil {
			return nil, err
		}
		for _, e := range r.log {
			if e.Sender == l.peer.ID && e.Causation == cause && cause != "" {
				return e, nil
			}
		}
		return nil, nil
	})
}

// CanSend implements agent.Link.
func (l *Link) CanSend(_ context.Context, channelID, eventType string) (bool, error) {
	return locked(l, "CanSend", func() (bool, error) {
		r, err := l.net.room(channelID)
		if fault.CodeOf(err) == fault.NotFound || err == nil && r.meta.State.Terminal() {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		probe := &envelope.Envelope{Channel: channelID, Sender: l.peer.ID, Type: eventType, Data: []byte(`{"text":""}`)}
		return r.adapter.ValidateSend(r.meta, r.state, probe) == nil, nil
	})
}

// Post implements agent.Link.
func (l *Link) Post(_ context.Context, e *envelope.Envelope) (string, error) {
	if err := l.failing("Post"); err != nil {
		return "", err
	}
	if err := l.failing("Post " + e.Type); err != nil {
		return "", err
	}
	return l.net.admit(e)
}

// PendingTurns implements agent.Link.
func (l *Link) PendingTurns(context.Context) ([]agent.PendingTurn, error) {
	return locked(l, "PendingTurns", func() ([]agent.PendingTurn, error) {
		var list []agent.PendingTurn
		for _, r := range l.net.rooms {
			if turn, ok := r.adapter.Expected(r.meta, r.state); ok && turn.Agent == l.peer.ID && !r.meta.State.Terminal() {
				list = append(list, agent.PendingTurn{Channel: r.meta.ID, Trigger: turn.Trigger, ExpectedAt: time.Now().UTC()})
			}
		}
		return list, nil
	})
}

// ReportTurnFailure implements agent.Link.
func (l *Link) ReportTurnFailure(_ context.Context, channelID, envelopeID string, cause error) error {
	_, err := locked(l, "ReportTurnFailure", func() (struct{}, error) {
		l.net.failures = append(l.net.failures, Failure{channelID, l.peer.ID, envelopeID, cause.Error()})
		l.net.touch()
		return struct{}{}, nil
	})
	return err
}

// Names implements agent.Link.
func (l *Link) Names(_ context.Context, ids []string) (map[string]string, error) {
	return locked(l, "Names", func() (map[string]string, error) {
		names := map[string]string{}
		for _, id := range ids {
			names[id] = id
			for _, other := range l.net.order {
				if other.peer.ID == id {
					names[id] = other.peer.Name
				}
			}
		}
		return names, nil
	})
}

// Peer implements agent.Link.
func (l *Link) Peer(_ context.Context, nameOrID string) (*agent.Peer, error) {
	return locked(l, "Peer", func() (*agent.Peer, error) {
		for _, by := range []func(*agent.Peer) string{
			func(p *agent.Peer) string { return p.Name }, func(p *agent.Peer) string { return p.ID },
		} {
			for _, other := range l.net.order {
				if by(other.peer) == nameOrID {
					return other.peer, nil
				}
			}
		}
		return nil, fault.New(fault.NotFound, "agent not registered: '%s'", nameOrID)
	})
}

// Peers implements agent.Link.
func (l *Link) Peers(_ context.Context, q agent.PeerQuery) ([]*agent.Peer, error) {
	return locked(l, "Peers", func() ([]*agent.Peer, error) {
		var list []*agent.Peer
		for _, other := range l.net.order {
			p := other.peer
			_, observed := p.Observed[q.Capability]
			if q.Capability != "" && !observed && !slices.Contains(p.Capabilities, q.Capability) {
				continue
			}
			if strings.Contains(strings.ToLower(p.Summary), strings.ToLower(q.Text)) {
				list = append(list, p)
			}
		}
		return list, nil
	})
}

// Skill implements agent.Link.
func (l *Link) Skill(_ context.Context, agentID string) (string, error) {
	return locked(l, "Skill", func() (string, error) {
		if text, ok := l.net.skills[agentID]; ok {
			return text, nil
		}
		return "fallback for " + agentID, nil
	})
}
