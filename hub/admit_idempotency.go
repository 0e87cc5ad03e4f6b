package hub

import (
	"context"
	"slices"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// idempotentRepeat answers a post whose idempotency key was used before with the
// first post's answer. It returns nil if the key is new.
func (h *Hub) idempotentRepeat(ctx context.Context, e *envelope.Envelope, by *Caller) *Pending {
	return h.repeatOf(ctx, e, func() *Pending { return h.Admit(ctx, e, by) })
}

// repeatOf is idempotentRepeat for any kind of post; admit posts once more what
// was not stored after all.
func (h *Hub) repeatOf(ctx context.Context, e *envelope.Envelope, admit func() *Pending) *Pending {
	state, err := h.keyHolder(ctx, e)
	if err != nil {
		return refused(err)
	}
	first := state.Ordered
	if first == nil {
		return nil
	}
	return &Pending{
		done: closedChan,
		resolve: func(ctx context.Context) (*Pending, error) {
			if state.Pending != nil {
				if err := state.Pending.Wait(ctx); err != nil {
					if ctx.Err() != nil {
						return nil, unavailable(err)
					}
					p := admit()
					_, err := p.Wait(ctx)
					return p, err
				}
			}
			return h.answerIdempotent(ctx, first, e)
		},
	}
}

// keyHolder looks up which record took an envelope's idempotency key.
func (h *Hub) keyHolder(ctx context.Context, e *envelope.Envelope) (journal.ClaimState, error) {
	state, err := h.journal.Claim(ctx, h.shardOf(e.Channel), schema.IdempotencyClaim(e.Channel, e.Sender, e.Key))
	return state, unavailable(err)
}

// answerIdempotent is the answer to the first post of a key.
func (h *Hub) answerIdempotent(ctx context.Context, first *journal.Claimed, e *envelope.Envelope) (*Pending, error) {
	page, err := h.journal.Read(ctx, first.Log, journal.ReadOptions{From: first.Seq, To: first.Seq})
	if err != nil {
		return nil, unavailable(err)
	}
	if len(page.Entries) == 0 {
		return nil, fault.New(fault.Unavailable, "what the idempotency key '%s' was used for is gone; try again", e.Key)
	}
	posted, err := readPosted(first.Log, page.Entries[0])
	if err != nil {
		return nil, err
	}
	if !equalContent(posted, e) {
		err := errIdempotencyKeyReused(e)
		h.rejected(e, err)
		return nil, err
	}
	return &Pending{id: posted.ID, seq: posted.Seq, done: closedChan}, nil
}

// readPosted reads an envelope of the history or of the side log.
func readPosted(log journal.LogName, entry journal.Entry) (*envelope.Envelope, error) {
	data, seq := entry.Data, entry.Seq
	if log.Family == schema.FamilySide {
		r, err := schema.DecodeSide(data)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "%v", err)
		}
		data, seq = r.Envelope, r.After
	}
	e, err := envelope.Unmarshal(data)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "%v", err)
	}
	e.Seq = seq
	return e, nil
}

func errIdempotencyKeyReused(e *envelope.Envelope) error {
	return fault.New(fault.Protocol, "idempotency key '%s' was used before with other content; choose a new one", e.Key)
}

// equalContent compares the fields that a sender chooses, except the trace.
func equalContent(a, b *envelope.Envelope) bool {
	ttl := (a.TTL == nil) == (b.TTL == nil) && (a.TTL == nil || *a.TTL == *b.TTL)
	return ttl && a.Type == b.Type && equalJSON(a.Data, b.Data) &&
		(a.Audience == nil) == (b.Audience == nil) && slices.Equal(a.Audience, b.Audience) &&
		a.To == b.To && a.Causation == b.Causation && a.Task == b.Task &&
		a.Priority == b.Priority && a.Depth == b.Depth && equalJSON(a.Ext, b.Ext)
}
