package hub

import (
	"context"
	"slices"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/journal"
)

// repeated answers a post whose idempotency key is known as the first time.
// Nil means that the key is new.
func (h *Hub) repeated(ctx context.Context, e *envelope.Envelope, by Caller) *Pending {
	state, err := h.journal.Claim(ctx, h.shard(), claimKey(e.Channel, e.Sender, e.Key))
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
			return h.answerRepeat(ctx, first, e)
		},
	}
}

func (h *Hub) answerRepeat(ctx context.Context, first *journal.Claimed, e *envelope.Envelope) (string, error) {
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
	if !sameContent(stored, e) {
		err := errOtherContent(e)
		h.rejected(e, err)
		return "", err
	}
	return stored.ID, nil
}

func errOtherContent(e *envelope.Envelope) error {
	return fault.New(fault.Protocol, "idempotency key '%s' was used before with other content; choose a new one", e.Key)
}

// sameContent compares what a sender chooses; traces may differ.
func sameContent(a, b *envelope.Envelope) bool {
	ttl := (a.TTL == nil) == (b.TTL == nil) && (a.TTL == nil || *a.TTL == *b.TTL)
	return ttl && a.Type == b.Type && sameJSON(a.Data, b.Data) &&
		(a.Audience == nil) == (b.Audience == nil) && slices.Equal(a.Audience, b.Audience) &&
		a.To == b.To && a.Causation == b.Causation && a.Task == b.Task &&
		a.Priority == b.Priority && a.Depth == b.Depth && sameJSON(a.Ext, b.Ext)
}
