package hub

import (
	"cmp"
	"context"
	"strings"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/registry"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// AdmitSide is Admit for an envelope of the side log: it is checked, stored and
// folded by the channel's adapter, which must be a channel.SideFolder. It has no
// sequence in the history, carries that of the last envelope before it, and is
// shown to followers as a live event. It takes no place in an inbox and is not
// replayed.
func (h *Hub) AdmitSide(ctx context.Context, e *envelope.Envelope, by *Caller) *Pending {
	p := h.admitSide(ctx, e, by)
	h.tellRefusal(p, e)
	return p
}

func (h *Hub) admitSide(ctx context.Context, e *envelope.Envelope, by *Caller) *Pending {
	if err := h.bound(e, by); err != nil {
		return refused(err)
	}
	if strings.HasPrefix(e.Type, "parley.") {
		return refused(fault.New(fault.Invalid, "event_type '%s' is the hub's own; choose one that does not begin with parley.", e.Type))
	}
	sender, err := h.sender(e, by)
	if err != nil {
		return refused(err)
	}
	return h.newPost(postSide, e, sender, by).admit(ctx)
}

// admitSideTo checks a side envelope against a channel. The channel is locked.
func (h *Hub) admitSideTo(ctx context.Context, ch *loadedChannel, sender *registry.Member, e *envelope.Envelope, by *Caller) (p *Pending, err error) {
	defer h.rescue(&err)
	if err := h.accepts(ch, ch.meta, e); err != nil {
		return nil, err
	}
	if err := h.belongs(ctx, ch, ch.meta, ch.state, e); err != nil {
		return nil, err
	}
	folder, ok := ch.adapter.(channel.SideFolder)
	if !ok {
		return nil, fault.New(fault.Protocol, "a %s keeps nothing beside its history; post '%s' to the history", ch.meta.Manifest.Type, e.Type)
	}
	if err := h.withinRate(sender); err != nil {
		return nil, err
	}
	if err := folder.ValidateSide(ch.meta, ch.state, e); err != nil {
		return nil, err
	}
	b := h.newBatch(ch)
	b.caller, b.answer = h.spans.Caller(ctx), e
	if err := b.addSide(e, true); err != nil {
		return nil, err
	}
	if err := b.actedFor(e, by); err != nil {
		return nil, err
	}
	// The history of the batch folds first, so that this is what the adapter sees
	// of the envelope itself, and not what is kept.
	after := folder.FoldSide(b.state, e)
	if err := b.apply(ch.adapter.OnAccepted(b.meta, after, e)); err != nil {
		return nil, err
	}
	return b.order(ctx)
}

// sideEnvelope is an envelope of the batch for the side log, with what its record
// does to index and claims.
type sideEnvelope struct {
	envelope *envelope.Envelope
	record   journal.Record
	note     schema.SideRecord // kind and name, if it is the hub's own
	// finish, if set, completes the record of the hub's own with its sequence.
	finish func(seq uint64, r *journal.Record)
}

// addSide stamps an envelope for the side log. It is folded behind the history of
// the batch, when the batch is ordered.
func (b *batch) addSide(e *envelope.Envelope, posted bool) error {
	id, err := b.hub.minter.Mint(b.now, b.lastID)
	if err != nil {
		return unavailable(err)
	}
	e.ID, e.CreatedAt, e.Channel, e.Seq = id, b.now, b.ch.id, b.seq
	side := sideEnvelope{envelope: e}
	if e.Key != "" && posted {
		side.record.Take = append(side.record.Take, b.hub.keyTake(b.ch.adapter, e, b.now))
	}
	b.sides = append(b.sides, side)
	return nil
}

// writeSides folds the batch's side envelopes and writes them, behind the history.
func (b *batch) writeSides() error {
	if len(b.sides) == 0 {
		return nil
	}
	folder, folds := b.ch.adapter.(channel.SideFolder)
	for i := range b.sides {
		side := &b.sides[i]
		e := side.envelope
		e.Seq = b.seq
		data, err := e.Append(nil)
		if err != nil {
			return fault.Wrap(fault.TooLarge, err, "%v", err)
		}
		note, seq := side.note, b.ch.heads.side+uint64(len(b.side))+1
		note.Kind, note.Envelope, note.After = cmp.Or(note.Kind, schema.SideDraft), data, e.Seq
		if note.Kind == schema.SideRequest {
			note.Asked = seq
		}
		b.sideNote(note, func(r *journal.Record) {
			data := r.Data
			*r = side.record
			r.Data = data
			if side.finish != nil {
				side.finish(seq, r)
			}
		})
		if folds && b.state != nil {
			b.state = folder.FoldSide(b.state, e)
		}
		b.items = append(b.items, item{envelope: e, meta: b.meta, where: channel.Side})
		if side.note.Kind != "" || b.state == nil {
			continue // the hub's own are only shown to followers
		}
		if err := b.tellLive(e); err != nil {
			return err
		}
	}
	b.sides = nil
	return nil
}

// addLive puts an envelope that is not stored into the order of the batch's
// deliveries.
func (b *batch) addLive(e *envelope.Envelope) error {
	e.ID, e.CreatedAt, e.Channel, e.Seq = "", b.now, b.ch.id, b.seq
	b.items = append(b.items, item{envelope: e, meta: b.meta, where: channel.Live})
	return b.tellLive(e)
}

// tellLive sets whom the last item of the batch, which is not of the history, is
// delivered to.
func (b *batch) tellLive(e *envelope.Envelope) error {
	to, err := b.recipients(e)
	if err == nil {
		b.tell(to)
	}
	return err
}

// withinRate refuses a sender that is faster than its rule allows.
func (h *Hub) withinRate(sender *registry.Member) error {
	ok, wait := sender.Places.Take(sender.Profile().Enforced().Limits.Rate, h.now())
	if ok {
		return nil
	}
	err := fault.New(fault.RateLimited, "'%s' posts faster than its rule's limits.rate; wait %s", sender.Name(), wait)
	err.RetryAfter = wait
	return err
}
