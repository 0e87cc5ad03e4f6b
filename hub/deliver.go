package hub

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/registry"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
)

// delivery is the queue between the journal and the readers: batches in the
// order they were ordered, each delivered once it is durable.
type delivery struct {
	work   sync.Mutex // held by the goroutine that delivers
	mu     sync.Mutex
	filled *sync.Cond
	queue  []*Pending
	onWay  int // pushed and not yet finished
	limit  int
	room   chan struct{} // closed and replaced when there is room again
	closed bool
	ended  bool // nothing pushed from now on is delivered
}

func (d *delivery) init(limit int) {
	d.filled = sync.NewCond(&d.mu)
	d.limit, d.room = limit, make(chan struct{})
}

var errClosed = fault.New(fault.Unavailable, "the hub is shutting down; try again")

// await waits for room for one more batch. It is called before a channel is
// locked, because delivering needs those locks.
func (d *delivery) await(ctx context.Context) error {
	for {
		d.mu.Lock()
		closed, full, room := d.closed, d.onWay >= d.limit, d.room
		d.mu.Unlock()
		if closed {
			return errClosed
		}
		if !full {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return fault.Wrap(fault.Unavailable, ctx.Err(), "too many posts are on their way (limits.in_flight); try again")
		}
	}
}

// push is called under the channel's lock, so that the batches of a channel
// are delivered in its log's order. It returns false once delivery has ended.
func (d *delivery) push(p *Pending) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return false
	}
	d.queue = append(d.queue, p)
	d.onWay++
	d.filled.Signal()
	return true
}

// begin counts something that is delivered beside the queue. It returns false
// once delivery has ended.
func (d *delivery) begin() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return false
	}
	d.onWay++
	return true
}

func (d *delivery) finished() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onWay--
	if d.onWay == d.limit-1 {
		close(d.room)
		d.room = make(chan struct{})
	}
}

func (d *delivery) waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.onWay
}

// head waits for the oldest batch. It answers false when the queue is closed
// and empty.
func (d *delivery) head() (*Pending, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.queue) == 0 {
		if d.closed {
			d.ended = true
			return nil, false
		}
		d.filled.Wait()
	}
	return d.queue[0], true
}

// take removes the oldest batch if it is stored or has failed.
func (d *delivery) take() *Pending {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 || d.queue[0].barrier == nil && d.queue[0].ticket.Outcome() == journal.Pending {
		return nil
	}
	p := d.queue[0]
	d.queue[0] = nil
	d.queue = d.queue[1:]
	return p
}

func (d *delivery) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.filled.Broadcast()
}

// deliverAll delivers and answers batches until the queue is closed and empty.
func (h *Hub) deliverAll() {
	for {
		p, ok := h.delivery.head()
		if !ok {
			return
		}
		if p.barrier == nil {
			<-p.ticket.Done()
		}
		h.delivery.work.Lock()
		h.deliverReady()
		h.delivery.work.Unlock()
	}
}

// lend lets a sender whose post is durable deliver every durable batch, in order,
// unless another goroutine does so already. It saves a wake-up.
func (h *Hub) lend() {
	if h.delivery.work.TryLock() {
		h.deliverReady()
		h.delivery.work.Unlock()
	}
}

// deliverReady finishes every batch that is stored or has failed, oldest first.
// The caller holds work.
func (h *Hub) deliverReady() {
	for p := h.delivery.take(); p != nil; p = h.delivery.take() {
		h.finish(p)
		h.delivery.finished()
	}
}

// finish ends one batch: it delivers the envelopes, calls the listeners and then answers
// the sender. If the batch was not stored, its channel is loaded again.
func (h *Hub) finish(p *Pending) {
	if p.barrier != nil {
		p.barrier()
		p.end()
		return
	}
	if err := p.ticket.Err(); err != nil {
		p.err = unavailable(err)
		h.failSpans(p.items, err)
		for i := range p.items {
			h.vacate(p.items[i].envelope.Sender, p.items[i].places)
		}
		p.ch.mu.Lock()
		h.abandon(p.ch)
		p.end()
		h.deliverLives(p.ch)
		h.openings.finish(p.ch.id, p.err)
		h.snapshots.wake(p.ch.id)
		return
	}
	h.syncedSpans(p.items)
	h.advance(p.ch, p.left)
	h.noteChange(p.ch)
	if len(p.items) == 0 {
		h.showFollowers(p.ch)
	}
	if len(p.audits) > 0 {
		h.ledger.Stored(p.audits...)
	}
	for _, first := range p.before {
		first()
	}
	alone := len(p.items) == 1 && h.delivery.waiting() == 1
	for i := range p.items {
		p.items[i].alone = alone
		if err := h.tryDispatch(p.ch, &p.items[i]); err != nil {
			p.escape(p.items[i].envelope.ID, err)
		}
	}
	if alone {
		// Writers to the recipients run before the sender is answered. This only shortens
		// the time of delivery; nothing depends on it.
		runtime.Gosched()
	}
	for _, then := range p.after {
		then()
	}
	reuseItems(p.items)
	p.left, p.items, p.one, p.audits, p.before, p.after = nil, nil, [1]item{}, nil, nil, nil
	p.end()
	h.deliverLives(p.ch)
	h.rest(p)
}

// rest clears a channel's last batch, and evicts an ended channel. It skips a
// channel that is in use.
func (h *Hub) rest(p *Pending) {
	ch := p.ch
	if !ch.mu.TryLock() {
		return
	}
	defer ch.mu.Unlock()
	if ch.last == p {
		ch.last = nil
	}
	if !ch.gone && ch.meta.State.Terminal() && ch.settled() {
		h.channels.drop(ch)
	}
}

// tryDispatch recovers if an arbiter panics: the post fails, although the envelope
// is stored, and the hub goes on.
func (h *Hub) tryDispatch(ch *loadedChannel, it *item) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.New(fault.Internal, "envelope '%s' is stored, and its delivery panicked: %v", it.envelope.ID, r)
			h.log.Error("delivery panicked", "envelope_id", it.envelope.ID, "panic", r, "stack", string(debug.Stack()))
			it.span.Fail(h.now(), err)
			h.vacate(it.envelope.Sender, it.places)
		}
	}()
	if it.where != channel.History {
		h.dispatchLive(ch, it)
	} else {
		h.dispatch(ch, it)
	}
	return nil
}

// dispatch delivers one durable envelope and calls the listeners.
func (h *Hub) dispatch(ch *loadedChannel, it *item) {
	e := it.envelope
	sender := h.registry.ByID(e.Sender)
	substantive := !envelope.IsProtocol(e.Type)
	h.stats.admitted.Add(1)
	if it.posted && sender != nil {
		sender.Seen.Store(e.CreatedAt.UnixNano())
		if substantive {
			sender.Places.Answered(ch.id)
		}
	}
	followers := h.followers(ch.id)
	var shared *Shared
	if len(followers)+len(it.to) > 0 {
		shared = &Shared{}
	}
	for _, s := range followers {
		s.put(Event{Envelope: e, Shared: shared}, ch.durable.Load())
	}
	failures := 0
	deliver := func(id string, m *registry.Member) {
		// Both lists have the participants' order, as a rule.
		reserved := len(it.places) > 0 && it.places[0] == id
		err := h.deliverTo(ch, it, sender, m, shared, reserved)
		if reserved {
			it.places = it.places[1:]
		}
		if err != nil {
			failures++
			h.hooks.each(func(l Listener) { l.DispatchFailed(e, id, err) })
		}
	}
	var unknown []string
	for _, id := range it.to {
		m := h.registry.ByID(id)
		if m == nil {
			unknown = append(unknown, id)
		}
		deliver(id, m)
	}
	if unknown != nil { // the arbiter may name others in place of them
		for _, id := range h.arbiter().ResolveUnknown(e, unknown) {
			deliver(id, h.registry.ByID(id))
		}
	}
	h.vacate(it.envelope.Sender, it.places)
	it.span.End(h.now(), failures)
	if it.posted {
		h.hooks.each(func(l Listener) { l.EnvelopePosted(e, it.meta) })
	}
}

// deliverTo delivers an envelope to one recipient, for which a place may have been
// reserved, or to nobody if there is no such identity. It is not an error if the recipient is not connected or refuses it.
func (h *Hub) deliverTo(ch *loadedChannel, it *item, sender, m *registry.Member, shared *Shared, reserved bool) error {
	if m == nil {
		return nil
	}
	counted := false
	err := h.tellMember(ch, it, sender, m, shared, func() int64 {
		counted = true
		return m.Places.Arrived(ch.id, it.envelope.ID, it.envelope.Sender, reserved)
	})
	if reserved && !counted {
		m.Places.Release(it.envelope.Sender)
	}
	return err
}

func (h *Hub) tellMember(ch *loadedChannel, it *item, sender, m *registry.Member, shared *Shared, count func() int64) error {
	if h.outlived(it.envelope) || ch.seats.Hides(m.ID) {
		return nil
	}
	to := m.Profile()
	if sender != nil && sender != m {
		if err := h.arbiter().AuthorizeDispatch(sender.Profile(), to, it.envelope); err != nil {
			return nil
		}
	}
	if to.Passport.Kind.Is(identity.RemoteAgent) {
		return h.deliverRemote(to, it.envelope)
	}
	n := &Notice{Envelope: it.envelope, Channel: it.meta, Recipient: m.ID, Dialect: dialectOf(ch.adapter), Shared: shared, Alone: it.alone}
	pending := int64(0)
	err := m.Link.Deliver(n, func() {
		h.stats.delivered.Add(1)
		ch.seats.Delivered(it.meta, m.ID, it.envelope, h.now())
		if !envelope.IsProtocol(it.envelope.Type) && n.Dialect == "" && !slices.Contains(it.guests, m.ID) {
			pending = count()
		}
	})
	inbox := to.Enforced().Limits.Inbox
	if mark, on := inbox.HighWaterMark(); on && pending == mark && pending > 0 {
		h.hooks.each(func(l Listener) { l.InboxPressure(m.ID, pending, inbox.MaxPending) })
	}
	return err
}

// Remote forwards envelopes to identities of another hub.
type Remote interface {
	Forward(to *identity.Passport, e *envelope.Envelope) error
}

func (h *Hub) deliverRemote(to Profile, e *envelope.Envelope) (err error) {
	remote, ok := h.opts.Remotes[to.Passport.Auth.Scheme]
	if !ok {
		return fault.New(fault.NotFound, "no remote proxy is registered for scheme '%s'", to.Passport.Auth.Scheme)
	}
	failed := errors.New("remote proxy failed")
	h.hooks.isolated(func() {
		failed = remote.Forward(to.Passport, e)
	})
	return failed
}
