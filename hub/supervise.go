package hub

import (
	"context"
	"slices"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// waiting is a supervisor's word that waits for the round in flight: it is
// ordered in the packet's batch, directly before the packet.
type waiting struct {
	envelope *envelope.Envelope
	pending  *Pending
	expires  *time.Timer
}

// hold keeps a supervisor's word back while the expected speaker works on its
// round. Held is false if the envelope is to be judged like any other.
func (h *Hub) hold(ctx context.Context, ch *held, e *envelope.Envelope) (p *Pending, held bool) {
	supervised, ok := ch.adapter.(channel.Supervised)
	if !ok || !isTurn(e.Type) || !supervised.Supervisor(ch.meta, ch.state, e.Sender) || !ch.inRound(e.Sender) {
		return nil, false
	}
	r := ch.more()
	if limit := h.opts.Limits.Held; len(r.waiting) >= limit {
		return refused(fault.New(fault.Unavailable, "channel '%s' expects its speaker to finish, and %d corrections wait already (limits.held); try again", ch.id, limit)), true
	}
	item := &waiting{envelope: e, pending: &Pending{done: make(chan struct{})}}
	item.expires = time.AfterFunc(h.opts.HoldFor, func() { h.expireWaiting(ch, item) })
	r.waiting = append(r.waiting, item)
	return item.pending, true
}

// isTurn reports whether a type can take a turn under a supervised adapter.
func isTurn(eventType string) bool {
	return eventType == envelope.TypeText || eventType == envelope.TypePacket
}

// inRound reports whether someone other than the sender is expected, and has
// been told of something that it has not acked.
func (ch *held) inRound(sender string) bool {
	turn, ok := ch.adapter.Expected(ch.meta, ch.state)
	if !ok || turn.Agent == sender {
		return false
	}
	return ch.readers.busy(ch.meta, turn.Agent)
}

// injections puts the waiting words before the envelope that ends the round.
func (w *writing) injections(e *envelope.Envelope) (injected int, err error) {
	r := w.ch.rare
	if r == nil || len(r.waiting) == 0 || !isTurn(e.Type) {
		return 0, nil
	}
	turn, ok := w.ch.adapter.Expected(w.meta, w.state)
	if !ok || turn.Agent != e.Sender {
		return 0, nil
	}
	return len(r.waiting), w.speak(r)
}

// speak adds every waiting word to the batch, and answers its sender once the
// batch is durable.
func (w *writing) speak(r *rare) error {
	list := r.waiting
	r.waiting = nil
	for _, item := range list {
		item.expires.Stop()
		if err := w.add(item.envelope, true); err != nil {
			item.refuse(err)
			return err
		}
		w.tell(w.ch.adapter.Recipients(w.meta, w.state, item.envelope))
	}
	w.waited = list
	return nil
}

// skipInjected spares whom the round's envelope makes expected the separate
// delivery: it reads the log anyway.
func (w *writing) skipInjected(injected int) {
	if injected == 0 {
		return
	}
	turn, ok := w.ch.adapter.Expected(w.meta, w.state)
	if !ok {
		return
	}
	for i := range injected {
		it := &w.items[len(w.items)-2-i]
		it.to = slices.DeleteFunc(slices.Clone(it.to), func(id string) bool { return id == turn.Agent })
	}
}

// releaseWaiting lets waiting words go when the round ended without an
// envelope. The channel is locked.
func (h *Hub) releaseWaiting(ctx context.Context, ch *held) error {
	r := ch.rare
	if r == nil || len(r.waiting) == 0 || ch.state == nil || ch.inRound("") {
		return nil
	}
	w := h.write(ch)
	if err := w.speak(r); err != nil {
		return err
	}
	_, err := w.order(ctx)
	if err != nil {
		for _, item := range w.waited {
			item.refuse(unavailable(err))
		}
	}
	return nil
}

func (h *Hub) expireWaiting(ch *held, item *waiting) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.rare == nil {
		return
	}
	i := slices.Index(ch.rare.waiting, item)
	if i < 0 {
		return
	}
	ch.rare.waiting = slices.Delete(ch.rare.waiting, i, i+1)
	turn, _ := ch.adapter.Expected(ch.meta, ch.state)
	item.refuse(fault.New(fault.Protocol, "channel '%s' expects '%s' to speak, whose round did not end within %s", ch.id, turn.Agent, h.opts.HoldFor))
}

// refuseWaiting answers everyone who waits in a channel.
func (ch *held) refuseWaiting(err error) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.rare == nil {
		return
	}
	for _, item := range ch.rare.waiting {
		item.expires.Stop()
		item.refuse(err)
	}
	ch.rare.waiting = nil
}

func (item *waiting) refuse(err error) {
	item.pending.err = err
	close(item.pending.done)
}

// answerWaited answers those whose words were part of a batch.
func (w *writing) answerWaited(p *Pending) {
	for _, item := range w.waited {
		id := item.envelope.ID
		p.onEnd = append(p.onEnd, func(err error) {
			item.pending.id, item.pending.err = id, err
			close(item.pending.done)
		})
	}
}
