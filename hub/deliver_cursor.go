package hub

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/journal"
)

// readers tracks how far each participant has read a channel in this process. Its
// lock is never held across a wait, because delivery takes it for every envelope.
type readers struct {
	mu     sync.Mutex
	seats  []seat                   // by place among the participants
	hidden atomic.Pointer[[]string] // nil: nobody is
}

type seat struct {
	acked     string // id; everything up to it is acked
	delivered string // id of the last content delivered
	handed    int64  // when, in nanoseconds
}

func (r *readers) seat(m *channel.Metadata, agent string) *seat {
	p, ok := m.Participant(agent)
	if !ok {
		return nil
	}
	if r.seats == nil {
		r.seats = make([]seat, len(m.Participants))
	}
	return &r.seats[p.Order]
}

// delivered remembers that a participant was handed an envelope.
func (r *readers) delivered(m *channel.Metadata, agent string, e *envelope.Envelope, at time.Time) {
	if !envelope.IsContent(e.Type) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.seat(m, agent); s != nil && s.delivered < e.ID {
		s.delivered, s.handed = e.ID, at.UnixNano()
	}
}

// handed is when a participant was handed an envelope or a later one; zero: it was
// not, as far as this process knows.
func (r *readers) handed(m *channel.Metadata, agent, envelopeID string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seat(m, agent)
	if s == nil || s.delivered == "" || envelopeID == "" || s.delivered < envelopeID {
		return time.Time{}
	}
	return time.Unix(0, s.handed).UTC()
}

func (r *readers) acked(m *channel.Metadata, agent, envelopeID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.seat(m, agent); s != nil && s.acked < envelopeID {
		s.acked = envelopeID
	}
}

// busy reports whether a participant was sent an envelope that it has not acked:
// its turn runs.
func (r *readers) busy(m *channel.Metadata, agent string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seat(m, agent)
	return s != nil && s.delivered > s.acked
}

// atWork returns the seats if anyone's turn runs.
func (r *readers) atWork() []seat {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.seats, func(s seat) bool { return s.delivered > s.acked }) {
		return r.seats
	}
	return nil
}

// hides reports whether live deliveries to a participant are held back.
func (r *readers) hides(agent string) bool {
	hidden := r.hidden.Load()
	return hidden != nil && slices.Contains(*hidden, agent)
}

func (r *readers) hide(agents []string) {
	if len(agents) == 0 {
		r.hidden.Store(nil)
		return
	}
	r.hidden.Store(&agents)
}

// Ack moves an identity's cursor in a channel up to an envelope. An older one
// moves nothing; acks are cumulative.
func (h *Hub) Ack(ctx context.Context, agent, channelID, envelopeID string) error {
	return h.AckReader(ctx, agent, "", channelID, envelopeID)
}

// AckReader moves the cursor of one of an identity's readers. What any reader has
// acked takes no place in the identity's inbox any more.
func (h *Hub) AckReader(ctx context.Context, agent, reader, channelID, envelopeID string) error {
	if err := checkReader(reader); err != nil {
		return err
	}
	if h.registry.byID(agent) == nil || envelopeID == "" || len(envelopeID) > envelope.MaxField {
		return nil
	}
	if h.channels.get(channelID) == nil {
		if _, err := h.Channel(ctx, channelID); err != nil {
			return ignoreMissing(err)
		}
	}
	k := h.tenant.Channel(channelID).Cursor(agent, reader)
	for {
		current, err := h.journal.LazyValue(ctx, k)
		if err != nil {
			return unavailable(err)
		}
		if string(current.Data) >= envelopeID {
			return nil
		}
		err = h.journal.PutLazy(ctx, journal.ValueWrite{Key: k, Data: []byte(envelopeID), Expect: journal.Exactly(current.Version)})
		if isConflict(err) {
			continue // another ack came first
		}
		if err != nil {
			return unavailable(err)
		}
		if m := h.registry.byID(agent); m != nil {
			m.inbox.acked(channelID, envelopeID)
		}
		return h.acked(ctx, agent, channelID, envelopeID)
	}
}

// acked updates the loaded channel, which may release waiting envelopes.
func (h *Hub) acked(ctx context.Context, agent, channelID, envelopeID string) error {
	ch := h.channels.get(channelID)
	if ch == nil {
		return nil
	}
	ch.mu.Lock()
	if ch.gone || ch.meta == nil {
		ch.mu.Unlock()
		return nil
	}
	ch.readers.acked(ch.meta, agent, envelopeID)
	failed, err := h.releaseWaiting(ctx, ch)
	ch.mu.Unlock()
	h.refuse(failed, err)
	return nil
}

func (c *channels) get(id string) *loadedChannel {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.loaded[id]
}

// Cursor returns the last envelope that an identity acked in a channel.
func (h *Hub) Cursor(ctx context.Context, agent, channelID string) (string, error) {
	return h.ReaderCursor(ctx, agent, "", channelID)
}

// ReaderCursor returns the last envelope that one of an identity's readers acked.
func (h *Hub) ReaderCursor(ctx context.Context, agent, reader, channelID string) (string, error) {
	v, err := h.journal.LazyValue(ctx, h.tenant.Channel(channelID).Cursor(agent, reader))
	return string(v.Data), unavailable(err)
}

// dropCursors removes the cursors of all readers of an identity.
func (h *Hub) dropCursors(ctx context.Context, channelID, agent string) error {
	key := h.tenant.Channel(channelID).Cursor(agent, "")
	return unavailable(journal.RemoveValues(ctx, h.journal, key.Partition, key.Name))
}

// Nack leaves the cursor where it is, so that the envelope is replayed at the
// next attach.
func (h *Hub) Nack(agent, channelID, envelopeID, reason string) {
	h.log.Info("envelope nacked", "agent_id", agent, "channel_id", channelID, "envelope_id", envelopeID, "reason", reason)
}
