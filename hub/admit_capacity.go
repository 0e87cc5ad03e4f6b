package hub

import (
	"context"
	"errors"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// capacity checks the sender's rate and every recipient's inbox. It reserves a
// place in the inbox of each connected recipient.
func (h *Hub) capacity(ch *loadedChannel, sender *member, e *envelope.Envelope) (places []string, err error) {
	if err := h.withinRate(sender); err != nil {
		return nil, err
	}
	if dialectOf(ch.adapter) != "" {
		return nil, nil // its own dialect has queues with limits of their own
	}
	in, err := h.members(context.Background(), ch.adapter, ch.meta, ch.state)
	if err != nil {
		return nil, err
	}
	for _, id := range ch.adapter.Recipients(ch.meta, ch.state, in, e) {
		m := h.registry.byID(id)
		if m == nil || id == e.Sender || !in.Has(id) {
			continue
		}
		depth, capacity := int64(0), m.profile().Enforced().Limits.Inbox.MaxPending
		if m.link.bound() {
			depth = m.inbox.reserve(e.Sender, capacity)
			places = append(places, id)
		} else {
			depth = m.inbox.depth(e.Sender, capacity)
		}
		if err := h.roomFor(m, depth); err != nil {
			h.vacate(e.Sender, places)
			if fault.CodeOf(err) == fault.Internal && !errors.Is(err, errBroke) {
				return nil, fault.Wrap(fault.InboxFull, err, "%v", err)
			}
			return nil, err
		}
	}
	return places, nil
}

func (h *Hub) roomFor(m *member, depth int64) (err error) {
	defer h.rescue(&err)
	return h.arbiter().AuthorizeInbox(m.profile(), depth)
}

// vacate releases places that were reserved for a sender's envelope.
func (h *Hub) vacate(sender string, places []string) {
	for _, id := range places {
		if m := h.registry.byID(id); m != nil {
			m.inbox.release(sender)
		}
	}
}

// guests are those whom an audience names and who are not members. They take no
// place in their inboxes: only members can answer, and an audience may name
// anyone.
func (h *Hub) guests(a channel.Adapter, m *channel.Metadata, s channel.State, e *envelope.Envelope) (guests []string, err error) {
	if e.Audience == nil {
		return nil, nil
	}
	in, err := h.members(context.Background(), a, m, s)
	if err != nil {
		return nil, err
	}
	for _, id := range e.Audience {
		if !in.Has(id) {
			guests = append(guests, id)
		}
	}
	return guests, nil
}
