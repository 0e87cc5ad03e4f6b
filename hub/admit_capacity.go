package hub

import (
	"context"
	"errors"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/registry"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/internal/jsonscan"
	"github.com/parley-hub/parley/journal"
)

// capacity checks the sender's rate and every recipient's inbox, as the channel is
// before the envelope. It reserves a place in the inbox of each connected recipient, and
// appends these to room.
func (h *Hub) capacity(
	ch *loadedChannel, meta *channel.Metadata, s channel.State, sender *registry.Member, e *envelope.Envelope, room []string,
) (places []string, err error) {
	if err := h.withinRate(sender); err != nil {
		return nil, err
	}
	places = room
	if dialectOf(ch.adapter) != "" {
		return places, nil // its dialect has its own bounded queues
	}
	in, err := h.members(context.Background(), ch.adapter, meta, s)
	if err != nil {
		return nil, err
	}
	for _, id := range ch.adapter.Recipients(meta, s, in, e) {
		m := h.registry.ByID(id)
		if m == nil || id == e.Sender || !in.Has(id) {
			continue
		}
		depth, capacity := int64(0), m.Profile().Enforced().Limits.Inbox.MaxPending
		if m.Link.Bound() {
			depth = m.Places.Reserve(e.Sender, capacity)
			places = append(places, id)
		} else {
			depth = m.Places.Depth(e.Sender, capacity)
		}
		if err := h.roomFor(m, depth); err != nil {
			h.vacate(e.Sender, places[len(room):])
			if fault.CodeOf(err) == fault.Internal && !errors.Is(err, errBroke) {
				return nil, fault.Wrap(fault.InboxFull, err, "%v", err)
			}
			return nil, err
		}
	}
	return places, nil
}

func (h *Hub) roomFor(m *registry.Member, depth int64) (err error) {
	defer h.rescue(&err)
	return h.arbiter().AuthorizeInbox(m.Profile(), depth)
}

// vacate releases places that were reserved for a sender's envelope.
func (h *Hub) vacate(sender string, places []string) {
	for _, id := range places {
		if m := h.registry.ByID(id); m != nil {
			m.Places.Release(sender)
		}
	}
}

// guests returns the agents that an audience names and that are not members. They take
// no place in their inboxes: only members can answer, and an audience may name anyone.
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

// maxNesting is how deep a payload or a channel's knobs may nest. Clients read JSON
// recursively: one value that is too deep would end the connection of every reader of
// the channel. The limit leaves room for the frame that a dialect puts around a
// payload.
const maxNesting = 250

// tooDeep refuses valid JSON that nests deeper than clients can read.
func tooDeep(what string, data []byte) error {
	if jsonscan.Deeper(data, maxNesting) {
		return fault.New(fault.TooLarge, "%s nests deeper than %d", what, maxNesting)
	}
	return nil
}

// notAccepted returns a post that was refused because of state that may not be durable:
// the newest batch of its channel, and the batch that holds a claim it needs. It is
// answered when both are durable, and posted again if one of them failed.
func notAccepted(err error, basis *Pending, again func() *Pending) *Pending {
	lost, err := taken(err)
	return &Pending{err: unavailable(err), done: closedChan, basis: basis, lost: lost, retry: again}
}

// taken turns a lost claim into a conflict that names the holder, and returns the
// batch that it was lost to.
func taken(err error) (*journal.Ticket, error) {
	var conflict *journal.ConflictError
	if !errors.As(err, &conflict) || conflict.Kind != journal.ClaimConflict {
		return nil, err
	}
	holder, _ := schema.ChannelOf(conflict.Claim.Log)
	refusal := fault.Wrap(fault.Conflict, err, "taken by channel '%s': %v", holder, err).Because(fault.Taken)
	refusal.Details = map[string]string{fault.DetailChannel: holder}
	return conflict.LostTo, refusal
}
