package hub

import (
	"context"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/journal"
)

// MaxAdmitAll is how many envelopes AdmitAll takes at once.
const MaxAdmitAll = 512

// AdmitAll is Admit for several envelopes of one sender in one channel. They are
// stored as one batch, all or none, and each is judged against the channel as the
// one before leaves it. Either each has an idempotency key of its own or none has
// one. The hub owns the envelopes from here on.
func (h *Hub) AdmitAll(ctx context.Context, list []*envelope.Envelope, by *Caller) *Pending {
	if len(list) == 0 || len(list) > MaxAdmitAll {
		return refused(fault.New(fault.Invalid, "%d envelopes; 1 to %d are posted together", len(list), MaxAdmitAll))
	}
	sender, culprit, err := h.boundAll(list, by)
	if err != nil {
		p := refused(err)
		h.tellRefusal(p, culprit)
		return p
	}
	all := &post{hub: h, list: list, by: by, sender: sender, kind: postAll, refused: list[0]}
	p := all.admit(ctx)
	h.tellRefusal(p, all.refused)
	return p
}

// boundAll checks what can be checked without the channel.
func (h *Hub) boundAll(list []*envelope.Envelope, by *Caller) (sender *member, culprit *envelope.Envelope, err error) {
	first, size := list[0], 0
	keys := make(map[string]bool, len(list))
	for i, e := range list {
		switch {
		case e.Channel != first.Channel || e.Sender != first.Sender:
			err = fault.New(fault.Invalid, "envelope %d is of '%s' for channel '%s', the first of '%s' for '%s'; post them separately",
				i, e.Sender, e.Channel, first.Sender, first.Channel)
		case (e.Key == "") != (first.Key == ""):
			err = fault.New(fault.Invalid, "envelope %d: give each envelope an idempotency key, or none of them", i)
		case keys[e.Key]:
			err = fault.New(fault.Invalid, "envelope %d: idempotency key '%s' is given twice; choose one for each envelope", i, e.Key)
		default:
			err = h.bound(e, by)
		}
		if err != nil {
			return nil, e, err
		}
		if e.Key != "" {
			keys[e.Key] = true
		}
		size += len(e.Data) + len(e.Ext)
	}
	if most := journal.MaxBatchBytes - batchRoom; size > most {
		return nil, first, fault.New(fault.TooLarge, "%d envelopes with %d bytes; at most %d bytes are posted together", len(list), size, most)
	}
	sender, err = h.sender(first, by)
	return sender, first, err
}

// admitAllTo checks the envelopes against a channel, each after the one before.
// The channel is locked.
func (h *Hub) admitAllTo(ctx context.Context, ch *loadedChannel, all *post) (p *Pending, err error) {
	defer h.rescue(&err)
	var places []string
	kept := false
	defer func() {
		if !kept {
			h.vacate(all.sender.id, places)
		}
	}()
	b := h.newBatch(ch)
	b.caller, b.by = h.spans.Caller(ctx), all.by
	b.expect(len(all.list))
	for _, e := range all.list {
		all.refused = e
		if err := h.judgeNext(ctx, b, all.sender, e, all.by); err != nil {
			return nil, err
		}
		b.places = nil
		if !envelope.IsProtocol(e.Type) {
			if b.places, err = h.capacity(ch, all.sender, e); err != nil {
				return nil, err
			}
			places = append(places, b.places...)
		}
		if err := b.accept(e); err != nil {
			return nil, err
		}
	}
	b.posted = all.list
	if p, err = b.order(ctx); err != nil {
		return nil, err
	}
	kept = true
	for _, e := range all.list {
		ch.noteAnswer(e)
	}
	b.release()
	return p, nil
}

// judgeNext judges the next envelope of a batch against the channel as the batch
// leaves it so far.
func (h *Hub) judgeNext(ctx context.Context, b *batch, sender *member, e *envelope.Envelope, by *Caller) error {
	ch := b.ch
	if err := h.accepts(ch, b.meta, e); err != nil {
		return err
	}
	if err := h.belongs(ctx, ch, b.meta, b.state, e); err != nil {
		return err
	}
	if err := h.answeredElsewhere(ch, sender, e, by); err != nil {
		return err
	}
	if supervised, ok := ch.adapter.(channel.Supervised); ok && isTurn(e.Type) && supervised.Supervisor(b.meta, b.state, e.Sender) && ch.inRound(e.Sender) {
		return fault.New(fault.Protocol, "channel '%s' is in a round, and '%s' supervises it: what a supervisor says then waits, so post it alone", ch.id, e.Sender)
	}
	if err := ch.adapter.ValidateSend(b.meta, b.state, e); err != nil {
		return err
	}
	return ch.answeredTwice(e)
}

// repeatedAll answers a post of several whose idempotency keys were used before
// with the first post's answer. It returns nil if the keys are new.
func (h *Hub) repeatedAll(ctx context.Context, list []*envelope.Envelope, by *Caller) *Pending {
	if list[0].Key == "" {
		return nil
	}
	holders := make([]journal.ClaimState, 0, len(list))
	for _, e := range list {
		holder, err := h.keyHolder(ctx, e)
		if err != nil {
			return refused(err)
		}
		if holder.Ordered != nil {
			holders = append(holders, holder)
		}
	}
	switch len(holders) {
	case 0:
		return nil
	case len(list):
		return &Pending{done: closedChan, resolve: func(ctx context.Context) (*Pending, error) { return h.answerAll(ctx, list, holders, by) }}
	}
	return refused(fault.New(fault.Protocol, "%d of the %d idempotency keys were used before; repeat a post with the same envelopes, or choose new keys", len(holders), len(list)))
}

// answerAll is the answer to the first post of the keys.
func (h *Hub) answerAll(ctx context.Context, list []*envelope.Envelope, holders []journal.ClaimState, by *Caller) (*Pending, error) {
	for _, holder := range holders {
		if holder.Pending == nil {
			continue
		}
		if err := holder.Pending.Wait(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, unavailable(err)
			}
			p := h.AdmitAll(ctx, list, by) // the first was not stored after all
			_, err := p.Wait(ctx)
			return p, err
		}
	}
	answer := &Pending{done: closedChan, channel: list[0].Channel, repeated: true}
	for i, e := range list {
		first, err := h.answerIdempotent(ctx, holders[i].Ordered, e)
		if err != nil {
			return nil, err
		}
		answer.id, answer.seq = first.id, first.seq
		answer.all = append(answer.all, stored{first.id, first.seq})
	}
	return answer, nil
}
