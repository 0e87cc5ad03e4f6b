package hub

import (
	"context"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/journal"
)

// seat is how far one participant has come in a channel.
type seat struct {
	acked     string // id; everything up to it is acked
	delivered string // id of the last delivered live or by replay
	known     bool   // acked has been read from the journal
}

// seat returns the participant's, or nil for anyone else.
func (ch *held) seat(agent string) *seat {
	p, ok := ch.meta.Participant(agent)
	if !ok {
		return nil
	}
	r := ch.more()
	if r.seats == nil {
		r.seats = make([]seat, len(ch.meta.Participants))
	}
	return &r.seats[p.Order]
}

// delivered remembers that a participant was handed an envelope.
func (ch *held) delivered(agent string, e *envelope.Envelope) {
	if !envelope.IsContent(e.Type) {
		return
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if s := ch.seat(agent); s != nil && s.delivered < e.ID {
		s.delivered = e.ID
	}
}

// hides reports whether live deliveries to a participant are held back.
func (ch *held) hides(agent string) bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.rare != nil && ch.rare.marks.hidden(agent)
}

func cursorKey(channelID, agent string) journal.ValueKey {
	return journal.ValueKey{Partition: channelPartition(channelID), Name: "cursor/" + agent}
}

// Ack moves an identity's cursor in a channel up to an envelope. An older one
// moves nothing; acks are cumulative.
func (h *Hub) Ack(ctx context.Context, agent, channelID, envelopeID string) error {
	if h.registry.byID(agent) == nil || envelopeID == "" || len(envelopeID) > envelope.MaxField {
		return nil
	}
	if m, err := h.peek(ctx, channelID); err != nil || m == nil {
		return ignoreMissing(err)
	}
	k := cursorKey(channelID, agent)
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
		return h.acked(ctx, agent, channelID, envelopeID)
	}
}

// acked tells the folded channel, which may let waiting supervisors speak.
func (h *Hub) acked(ctx context.Context, agent, channelID, envelopeID string) error {
	ch := h.channels.get(channelID)
	if ch == nil {
		return nil
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.gone || ch.meta == nil {
		return nil
	}
	if s := ch.seat(agent); s != nil && s.acked < envelopeID {
		s.acked, s.known = envelopeID, true
	}
	return h.releaseWaiting(ctx, ch)
}

func (c *channels) get(id string) *held {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.held[id]
}

// Cursor returns the last envelope that an identity acked in a channel.
func (h *Hub) Cursor(ctx context.Context, agent, channelID string) (string, error) {
	v, err := h.journal.LazyValue(ctx, cursorKey(channelID, agent))
	return string(v.Data), unavailable(err)
}

func (h *Hub) dropCursor(ctx context.Context, channelID, agent string) error {
	return unavailable(h.journal.PutLazy(ctx, journal.ValueWrite{Key: cursorKey(channelID, agent), Delete: true}))
}

// Nack leaves the cursor where it is, so that the envelope is replayed at the
// next attach.
func (h *Hub) Nack(agent, channelID, envelopeID, reason string) {
	h.log.Info("envelope nacked", "agent_id", agent, "channel_id", channelID, "envelope_id", envelopeID, "reason", reason)
}
