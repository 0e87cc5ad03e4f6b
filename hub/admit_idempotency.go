package hub

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/internal/jsonscan"
	"github.com/parley-hub/parley/journal"
)

// idempotentRepeat answers a post whose idempotency key was used before with the first
// post's answer. It returns nil if there is no key, or a new one. The function again
// posts once more, if the first post was not stored after all.
func (h *Hub) idempotentRepeat(ctx context.Context, e *envelope.Envelope, again func() *Pending) *Pending {
	if e.Key == "" {
		return nil
	}
	state, err := h.keyHolder(ctx, e)
	if err != nil {
		return refused(err)
	}
	return h.repeatOf(state, again, func(ctx context.Context) (*Pending, error) {
		return h.answerIdempotent(ctx, state.Ordered, e)
	})
}

// repeatOf returns a post that is answered by the holder of a claim, or nil if the claim
// is free.
func (h *Hub) repeatOf(state journal.ClaimState, again func() *Pending, answer func(ctx context.Context) (*Pending, error)) *Pending {
	if state.Ordered == nil {
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
					p := again()
					_, err := p.Wait(ctx)
					return p, err
				}
			}
			return answer(ctx)
		},
	}
}

// keyHolder looks up which record took an envelope's idempotency key.
func (h *Hub) keyHolder(ctx context.Context, e *envelope.Envelope) (journal.ClaimState, error) {
	a, err := h.keyAdapter(ctx, e.Channel)
	if err != nil {
		return journal.ClaimState{}, err
	}
	state, err := h.journal.Claim(ctx, h.shardOf(e.Channel), keyClaim(a, e))
	return state, unavailable(err)
}

// keyAdapter returns the adapter that decides the scope of a channel's keys. It is nil
// for a channel without a home, whose keys have only one scope.
func (h *Hub) keyAdapter(ctx context.Context, channelID string) (channel.Adapter, error) {
	if HomeOf(channelID) == "" {
		return nil, nil
	}
	if ch := h.channels.get(channelID); ch != nil {
		if s := ch.durable.Load(); s != nil {
			return s.adapter, nil
		}
	}
	m, err := h.Channel(ctx, channelID)
	if err != nil {
		return nil, fault.IgnoreNotFound(err)
	}
	return h.adapterOf(m.Manifest.Key()), nil
}

// homeKeys reports whether an adapter's idempotency keys are unique in the whole home.
func homeKeys(a channel.Adapter) bool {
	scope, ok := a.(channel.KeyScope)
	return ok && scope.HomeKeys()
}

// keyClaim is the claim of an envelope's idempotency key.
func keyClaim(a channel.Adapter, e *envelope.Envelope) string {
	if home := HomeOf(e.Channel); home != "" && homeKeys(a) {
		return schema.HomeKeyClaim(home, e.Key)
	}
	return schema.IdempotencyClaim(e.Channel, e.Sender, e.Key)
}

// keyTake returns the claim that the record of an envelope takes for its key.
func (h *Hub) keyTake(a channel.Adapter, e *envelope.Envelope, now time.Time) journal.Take {
	take := journal.Take{Name: keyClaim(a, e)}
	if HomeOf(e.Channel) == "" || !homeKeys(a) {
		take.Expires = now.Add(h.opts.IdempotencyWindow)
	}
	return take
}

// isKey reports whether a batch lost the idempotency key, or the origin, of one of
// the envelopes.
func isKey(err error, list ...*envelope.Envelope) bool {
	var conflict *journal.ConflictError
	if !errors.As(err, &conflict) || conflict.Kind != journal.ClaimConflict {
		return false
	}
	name := conflict.Claim.Name
	return slices.ContainsFunc(list, func(e *envelope.Envelope) bool {
		return name == originClaim(e) || e.Key != "" && (name == schema.IdempotencyClaim(e.Channel, e.Sender, e.Key) || name == schema.HomeKeyClaim(HomeOf(e.Channel), e.Key))
	})
}

// answerIdempotent returns the answer to the first post with a key.
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
	inHome := first.Name == schema.HomeKeyClaim(HomeOf(posted.Channel), e.Key)
	if !inHome && !equalContent(posted, e) {
		err := errIdempotencyKeyReused(e)
		h.rejected(e, err)
		return nil, err
	}
	return &Pending{id: posted.ID, seq: posted.Seq, channel: posted.Channel, repeated: true, done: closedChan}, nil
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
	return ttl && a.Type == b.Type && jsonscan.Equal(a.Data, b.Data) &&
		(a.Audience == nil) == (b.Audience == nil) && slices.Equal(a.Audience, b.Audience) &&
		a.To == b.To && a.Causation == b.Causation && a.Task == b.Task &&
		a.Priority == b.Priority && a.Depth == b.Depth && jsonscan.Equal(a.Ext, b.Ext)
}
