package hub

import (
	"context"
	"slices"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/tracing"
	"github.com/parley-hub/parley/journal"
)

// waiting is a supervisor's envelope that waits for the round in flight. It is
// written in the packet's batch, directly before the packet.
type waiting struct {
	envelope *envelope.Envelope
	size     int            // in the batch
	places   []string       // inboxes in which room is reserved
	caller   tracing.Caller // how it arrived
	by       *Caller        // who posted it
	pending  *Pending
	expires  *time.Timer
}

// hold keeps a supervisor's envelope, and the inbox places reserved for it, while
// the expected speaker works on its round. If it returns nil, the envelope is
// checked like any other.
func (h *Hub) hold(ctx context.Context, ch *loadedChannel, e *envelope.Envelope, places []string, by *Caller) (p *Pending, kept bool) {
	supervised, ok := ch.adapter.(channel.Supervised)
	if !ok || !isTurn(e.Type) || !supervised.Supervisor(ch.meta, ch.state, e.Sender) || !ch.inRound(e.Sender) {
		return nil, false
	}
	r := ch.ensureExtras()
	if twin := r.waitingAs(e); twin != nil {
		if !equalContent(twin.envelope, e) {
			return refused(errIdempotencyKeyReused(e)), false
		}
		return twin.pending, false
	}
	size, err := h.checkFits(ch, e)
	if err != nil {
		return refused(err), false
	}
	item := &waiting{
		envelope: e, size: size, places: places, caller: h.spans.Caller(ctx), by: by, pending: &Pending{done: make(chan struct{})},
	}
	item.expires = time.AfterFunc(h.opts.HoldFor, func() { h.expireWaiting(ch, item) })
	r.waiting = append(r.waiting, item)
	return item.pending, true
}

// waitingAs finds a waiting envelope with the same idempotency key, which has no
// claim yet.
func (r *extras) waitingAs(e *envelope.Envelope) *waiting {
	i := slices.IndexFunc(r.waiting, func(item *waiting) bool {
		return e.Key != "" && item.envelope.Key == e.Key && item.envelope.Sender == e.Sender
	})
	if i < 0 {
		return nil
	}
	return r.waiting[i]
}

// batchRoom is left in a batch for what a packet brings beside its payload.
const batchRoom = 256 << 10

// checkFits refuses an envelope that could not be stored in one batch with the packet and
// the envelopes that wait already, so that the packet is never refused because of it.
func (h *Hub) checkFits(ch *loadedChannel, e *envelope.Envelope) (size int, err error) {
	stamped := *e
	stamped.ID, stamped.CreatedAt = ch.id, h.now() // all ids have the same length
	data, err := stamped.Append(nil)
	if err != nil {
		return 0, fault.Wrap(fault.TooLarge, err, "%v", err)
	}
	waiting := ch.extras.waiting
	if limit := h.opts.Limits.Held; len(waiting) >= limit {
		return 0, fault.New(fault.Unavailable, "channel '%s' expects its speaker to finish, and %d corrections wait already (limits.held); try again", ch.id, limit)
	}
	sum := len(data)
	for _, item := range waiting {
		sum += item.size
	}
	if most := journal.MaxBatchBytes - h.opts.Limits.EventBytes - batchRoom; sum > most {
		return 0, fault.New(fault.Unavailable, "channel '%s' expects its speaker to finish, and the corrections that wait would have %d bytes, of %d that are stored with its packet; try again", ch.id, sum, most)
	}
	return len(data), nil
}

// isTurn reports whether a type can take a turn under a supervised adapter.
func isTurn(eventType string) bool {
	return eventType == envelope.TypeText || eventType == envelope.TypePacket
}

// inRound reports whether an agent other than the sender is expected, and has received
// an envelope that it has not acked.
func (ch *loadedChannel) inRound(sender string) bool {
	turn, ok := ch.adapter.Expected(ch.meta, ch.state)
	if !ok || turn.Agent == sender {
		return false
	}
	return ch.seats.Busy(ch.meta, turn.Agent)
}

// injections adds the waiting envelopes before the one that ends the round.
func (b *batch) injections(e *envelope.Envelope) (injected int, err error) {
	r := b.ch.extras
	if r == nil || len(r.waiting) == 0 || b.spoken || !isTurn(e.Type) {
		return 0, nil
	}
	turn, ok := b.ch.adapter.Expected(b.meta, b.state)
	if !ok || turn.Agent != e.Sender {
		return 0, nil
	}
	return len(r.waiting), b.speak(r)
}

// speak adds every waiting envelope to the batch. They stay in the list until the
// batch is appended.
func (b *batch) speak(r *extras) error {
	defer func(caller tracing.Caller) { b.caller = caller }(b.caller)
	for _, item := range r.waiting {
		b.caller = item.caller
		if err := b.add(item.envelope, true); err != nil {
			return err
		}
		if err := b.actedFor(item.envelope, item.by); err != nil {
			return err
		}
		to, err := b.recipients(item.envelope)
		if err != nil {
			return err
		}
		b.tell(to)
		b.items[len(b.items)-1].places = item.places
		if err := b.unhide(item.envelope); err != nil {
			return err
		}
	}
	b.spoken = true
	return nil
}

// skipInjected removes the next expected speaker from the recipients: it reads the
// injected envelopes from the log.
func (b *batch) skipInjected(injected int) {
	if injected == 0 {
		return
	}
	turn, ok := b.ch.adapter.Expected(b.meta, b.state)
	if !ok {
		return
	}
	for i := range injected {
		it := &b.items[len(b.items)-2-i]
		it.to = slices.DeleteFunc(slices.Clone(it.to), func(id string) bool { return id == turn.Agent })
	}
}

// releaseWaiting writes the waiting envelopes when the round ended without one.
// The channel is locked. It returns those that could not be stored.
func (h *Hub) releaseWaiting(ctx context.Context, ch *loadedChannel) (failed []*waiting, err error) {
	r := ch.extras
	if r == nil || len(r.waiting) == 0 || ch.state == nil || ch.inRound("") {
		return nil, nil
	}
	b := h.newBatch(ch)
	if err = b.speak(r); err == nil {
		_, err = b.order(ctx)
	}
	if err != nil {
		return ch.takeWaiting(), unavailable(err)
	}
	return nil, nil
}

func (h *Hub) expireWaiting(ch *loadedChannel, item *waiting) {
	ch.mu.Lock()
	i := -1
	if ch.extras != nil {
		i = slices.Index(ch.extras.waiting, item)
	}
	if i < 0 {
		ch.mu.Unlock()
		return
	}
	ch.extras.waiting = slices.Delete(ch.extras.waiting, i, i+1)
	turn, _ := ch.adapter.Expected(ch.meta, ch.state)
	ch.mu.Unlock()
	h.refuse([]*waiting{item}, fault.New(fault.Protocol, "channel '%s' expects '%s' to speak, whose round did not end within %s", ch.id, turn.Agent, h.opts.HoldFor).Because(fault.OutOfTurn))
}

// refuseWaiting refuses all envelopes that wait in a channel.
func (h *Hub) refuseWaiting(ch *loadedChannel, err error) {
	ch.mu.Lock()
	list := ch.takeWaiting()
	ch.mu.Unlock()
	h.refuse(list, err)
}

// abandon drops a channel whose fold includes a batch that was not stored. The
// caller has locked the channel; abandon unlocks it.
func (h *Hub) abandon(ch *loadedChannel) {
	h.channels.drop(ch)
	list := ch.takeWaiting()
	ch.mu.Unlock()
	h.refuse(list, fault.New(fault.Unavailable, "not stored: what channel '%s' was at is gone; try again", ch.id))
}

// takeWaiting empties the waiting list and returns it. The channel is locked.
func (ch *loadedChannel) takeWaiting() []*waiting {
	if ch.extras == nil {
		return nil
	}
	list := ch.extras.waiting
	ch.extras.waiting = nil
	for _, item := range list {
		item.expires.Stop()
	}
	return list
}

// refuse answers the senders of waiting envelopes that are dropped. No channel may
// be locked, because it calls listeners.
func (h *Hub) refuse(list []*waiting, err error) {
	for _, item := range list {
		h.vacate(item.envelope.Sender, item.places)
		h.rejected(item.envelope, err)
		item.pending.err = err
		close(item.pending.done)
	}
}

// answerSpoken answers the senders of the waiting envelopes in a batch when the
// batch ends.
func (b *batch) answerSpoken(p *Pending) {
	if !b.spoken {
		return
	}
	for _, item := range b.ch.takeWaiting() {
		id := item.envelope.ID
		p.onEnd = append(p.onEnd, func(err error) {
			item.pending.id, item.pending.err = id, err
			close(item.pending.done)
		})
	}
}
