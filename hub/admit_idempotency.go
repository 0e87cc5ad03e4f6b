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
	state, err := h.journal.Claim(ctx, h.shard(), schema.IdempotencyClaim(e.Channel, e.Sender, e.Key))
	if err != nil {
		return refused(unavailable(err))
	}
	first := state.Ordered
	if first == nil {
		return nil
	}
	return &Pending{
		done: closedChan,
		resolve: func(ctx context.Context) (string, error) {
			if state.Pending != nil {
				if err := state.Pending.Wait(ctx); err != nil {
					if ctx.Err() != nil {
						return "", unavailable(err)
					}
					return h.Admit(ctx, e, by).Wait(ctx) // the first was not stored after all
				}
			}
			return h.answerIdempotent(ctx, first, e)
		},
	}
}

func (h *Hub) answerIdempotent(ctx context.Context, first *journal.Claimed, e *envelope.Envelope) (string, error) {
	page, err := h.journal.Read(ctx, first.Log, journal.ReadOptions{From: first.Seq, To: first.Seq})
	if err != nil {
		return "", unavailable(err)
	}
	if len(page.Entries) == 0 {
		return "", fault.New(fault.Unavailable, "what the idempotency key '%s' was used for is gone; try again", e.Key)
	}
	stored, err := envelope.Unmarshal(page.Entries[0].Data)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "%v", err)
	}
	if !equalContent(stored, e) {
		err := errIdempotencyKeyReused(e)
		h.rejected(e, err)
		return "", err
	}
	return stored.ID, nil
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
