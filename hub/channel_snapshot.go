package hub

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// snapshot is a channel as it was when one of its batches became durable. Readers use it
// without the channel's lock and without waiting for a later batch. It is immutable.
type snapshot struct {
	meta    *channel.Metadata
	adapter channel.Adapter // nil: none is loaded
	state   channel.State   // nil: it cannot be folded
	history uint64          // the last sequence that it is folded from
}

// snapshots wakes readers that wait for a channel's snapshot to include a sequence.
type snapshots struct {
	waiting atomic.Int32 // how many wait; at 0 there is nothing to look for
	mu      sync.Mutex
	moved   map[string]chan struct{} // by channel: closed when its snapshot moves
}

// next returns a channel that is closed when a snapshot moves.
func (s *snapshots) next(id string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moved == nil {
		s.moved = map[string]chan struct{}{}
	}
	c := s.moved[id]
	if c == nil {
		c = make(chan struct{})
		s.moved[id] = c
		s.waiting.Add(1)
	}
	return c
}

func (s *snapshots) wake(id string) {
	if s.waiting.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.moved[id]; c != nil {
		close(c)
		delete(s.moved, id)
		s.waiting.Add(-1)
	}
}

// current is the channel as it is folded now. The caller holds its lock.
func (ch *loadedChannel) current() *snapshot {
	s := &snapshot{meta: ch.meta, adapter: ch.adapter, state: ch.state, history: ch.heads.history}
	if ch.broken() != nil {
		// Who may read a channel that cannot be folded is judged from its creation.
		var err error
		if s.state, err = ch.adapter.Initial(ch.meta); err != nil {
			s.adapter, s.state = nil, nil
		}
	}
	return s
}

// advance makes what a batch left behind the channel's newest durable snapshot.
// It is called in the order of the channel's log.
func (h *Hub) advance(ch *loadedChannel, s *snapshot) {
	ch.durable.Store(s)
	h.snapshots.wake(ch.id)
}

// snapshot returns the newest durable snapshot of a channel that includes a
// sequence, which must be durable.
func (h *Hub) snapshot(ctx context.Context, id string, seq uint64) (*snapshot, error) {
	for {
		if ch := h.channels.get(id); ch != nil {
			if s := ch.durable.Load(); s.serves(seq) {
				return s, nil
			}
		}
		s, err := h.loadSnapshot(ctx, id)
		if err != nil || s.serves(seq) {
			return s, err
		}
		moved := h.snapshots.next(id)
		if s, err = h.loadSnapshot(ctx, id); err != nil || s.serves(seq) {
			return s, err // it moved just before
		}
		// The batch is durable, and its delivery will update the snapshot.
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, fault.Wrap(fault.Unavailable, ctx.Err(), "gave up waiting for channel '%s': %v", id, ctx.Err())
		}
	}
}

func (s *snapshot) serves(seq uint64) bool {
	return s != nil && s.history >= seq && (s.state != nil || !s.meta.State.Terminal() || s.adapter == nil)
}

// durableMeta returns the newest durable metadata of a channel. One that is not
// loaded stays so.
func (h *Hub) durableMeta(ctx context.Context, id string) (*channel.Metadata, error) {
	if ch := h.channels.get(id); ch != nil {
		if s := ch.durable.Load(); s != nil {
			return s.meta, nil
		}
	}
	return h.Channel(ctx, id)
}

// loadSnapshot loads a channel, and folds one that has ended.
func (h *Hub) loadSnapshot(ctx context.Context, id string) (*snapshot, error) {
	ch, err := h.lock(ctx, id)
	if err != nil {
		return nil, err
	}
	defer ch.mu.Unlock()
	s := ch.durable.Load()
	if s == nil || s.state != nil || ch.adapter == nil || ch.broken() != nil || ch.last != nil {
		return s, nil
	}
	if _, err := h.folded(ctx, ch); err != nil && ch.broken() == nil {
		return nil, err
	}
	s = ch.current()
	h.advance(ch, s)
	return s, nil
}

// dialectOf returns the only dialect whose clients see an adapter's channels; empty: all.
func dialectOf(a channel.Adapter) string {
	if only, ok := a.(channel.DialectOnly); ok {
		return only.Dialect()
	}
	return ""
}

// sees reports whether an agent may read an envelope.
func (h *Hub) sees(ctx context.Context, s *snapshot, e *envelope.Envelope, agent string) (bool, error) {
	if s.adapter == nil {
		return false, nil
	}
	in, err := h.members(ctx, s.adapter, s.meta, s.state)
	if err != nil {
		return false, err
	}
	return in.Has(agent) && s.adapter.Visible(s.meta, s.state, in, e, agent), nil
}

// Sight returns a function that reports whether any of some agents may read an
// envelope of a channel, as the channel is now.
func (h *Hub) Sight(ctx context.Context, channelID string, agents []string) (func(*envelope.Envelope) bool, error) {
	s, err := h.snapshot(ctx, channelID, 0)
	if err != nil {
		return nil, err
	}
	if s.adapter == nil {
		return func(*envelope.Envelope) bool { return false }, nil
	}
	in, err := h.members(ctx, s.adapter, s.meta, s.state)
	if err != nil {
		return nil, err
	}
	return func(e *envelope.Envelope) bool {
		return slices.ContainsFunc(agents, func(agent string) bool {
			return in.Has(agent) && s.adapter.Visible(s.meta, s.state, in, e, agent)
		})
	}, nil
}

// recipients returns whom the adapter notifies of the last envelope of the batch.
func (b *batch) recipients(e *envelope.Envelope) ([]string, error) {
	// The channel that the members come from is usually in memory, and reading it
	// takes little time, so this does not end when ctx does.
	in, err := b.hub.members(context.Background(), b.ch.adapter, b.meta, b.state)
	if err != nil {
		return nil, err
	}
	if b.items[len(b.items)-1].guests, err = b.hub.guests(b.ch.adapter, b.meta, b.state, e); err != nil {
		return nil, err
	}
	return b.ch.adapter.Recipients(b.meta, b.state, in, e), nil
}

// Viewer returns a function that reports which envelopes of a channel an agent
// may read, as the channel is now.
func (h *Hub) Viewer(ctx context.Context, channelID, agent string) (func(*envelope.Envelope) (bool, error), error) {
	s, err := h.snapshot(ctx, channelID, 0)
	if err != nil {
		return nil, err
	}
	return func(e *envelope.Envelope) (bool, error) { return h.sees(ctx, s, e, agent) }, nil
}
