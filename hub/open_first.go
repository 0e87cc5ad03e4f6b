package hub

import (
	"cmp"
	"context"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// AdmitOpening creates a channel and its first envelope in one batch. Its
// adapter must open at once. In a home, an idempotency key that was used before
// is answered with the channel and the envelope of the first time; without one
// there is no place in which openings are compared.
func (h *Hub) AdmitOpening(ctx context.Context, o Opening, first *envelope.Envelope) (Opened, string, error) {
	first.Sender, first.Channel = cmp.Or(first.Sender, o.Creator), newChannel(o.Home)
	if err := h.bound(first, nil); err != nil {
		return Opened{}, "", err
	}
	inHome := homeKeys(h.adapterOf(channel.Key{Type: o.Type, Version: cmp.Or(o.Version, 1)}))
	key := openingKey(o, first, inHome)
	for {
		if key != "" {
			created, id, found, err := h.repeatedOpening(ctx, o.Home, key, first, inHome)
			if err != nil || found {
				return created, id, err
			}
		}
		created, _, err := h.create(ctx, o, first, func(b *batch) error {
			if !inHome {
				b.openingKey = key
			}
			return nil
		})
		if key == "" || !lostClaimOf(err, key) {
			return created, first.ID, err
		}
	}
}

// openingKey is the claim of an opening's idempotency key; empty: it has none.
func openingKey(o Opening, first *envelope.Envelope, inHome bool) string {
	switch {
	case first.Key == "" || o.Home == "":
		return ""
	case inHome:
		return schema.HomeKeyClaim(o.Home, first.Key)
	}
	return schema.OpeningKeyClaim(o.Home, o.Type, first.Sender, first.Key)
}

// repeatedOpening returns what an earlier opening with the same key made.
func (h *Hub) repeatedOpening(ctx context.Context, home, key string, first *envelope.Envelope, inHome bool) (created Opened, id string, found bool, err error) {
	for {
		state, err := h.journal.Claim(ctx, h.journal.Shard(h.tenant.Home(home)), key)
		if err != nil {
			return Opened{}, "", false, unavailable(err)
		}
		if state.Pending != nil { // the answer waits for how that ends
			if err := state.Pending.Wait(ctx); err != nil && ctx.Err() != nil {
				return Opened{}, "", false, unavailable(err)
			}
			continue
		}
		if state.Durable == nil {
			return Opened{}, "", false, nil
		}
		return h.openedBefore(ctx, state.Durable, first, inHome)
	}
}

func (h *Hub) openedBefore(ctx context.Context, holder *journal.Claimed, first *envelope.Envelope, inHome bool) (created Opened, id string, found bool, err error) {
	channelID, _ := schema.ChannelOf(holder.Log)
	if inHome {
		p, err := h.answerIdempotent(ctx, holder, first)
		if err != nil {
			return Opened{}, "", false, err
		}
		id = p.id
	} else {
		posted, err := h.envelopeAt(ctx, channelID, 1) // what it was opened with
		if err != nil {
			return Opened{}, "", false, err
		}
		if !equalContent(posted, first) {
			return Opened{}, "", false, errIdempotencyKeyReused(first)
		}
		id = posted.ID
	}
	m, err := h.Channel(ctx, channelID)
	if fault.CodeOf(err) == fault.NotFound {
		return Opened{}, "", false, fault.Wrap(fault.Unavailable, err, "what the idempotency key '%s' was used for is being deleted; try again", first.Key)
	}
	return Opened{Metadata: m, Repeated: true}, id, err == nil, err
}
