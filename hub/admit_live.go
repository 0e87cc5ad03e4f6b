package hub

import (
	"context"
	"sync"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// SendLive fans an envelope out to whoever is connected, and stores nothing:
// no id, no sequence. It carries the last durable sequence, is delivered after
// it and before whatever is stored next, and is dropped by readers that are
// behind. It returns when the envelope has its place in the delivery order.
func (h *Hub) SendLive(ctx context.Context, e *envelope.Envelope, by *Caller) error {
	if err := h.bound(e, by); err != nil {
		return err
	}
	if h.registry.ByID(e.Sender) == nil {
		return fault.New(fault.NotFound, "sender not registered: '%s'", e.Sender)
	}
	if !by.MayActFor(e.Sender) {
		return fault.New(fault.AccessDenied, "this connection may not act for '%s'", e.Sender)
	}
	if err := h.delivery.await(ctx); err != nil {
		return err
	}
	ch, err := h.lock(ctx, e.Channel)
	if err != nil {
		return err
	}
	defer ch.mu.Unlock()
	if err := h.accepts(ch, ch.meta, e); err != nil {
		return err
	}
	if ch.meta.State != channel.Active {
		return fault.New(fault.Protocol, "channel '%s' is not active: it is %s", ch.id, ch.meta.State)
	}
	if err := h.belongs(ctx, ch, ch.meta, ch.state, e); err != nil {
		return err
	}
	in, err := h.members(ctx, ch.adapter, ch.meta, ch.state)
	if err != nil {
		return err
	}
	e.ID, e.Seq, e.CreatedAt = "", ch.heads.history, h.now().UTC()
	it := item{envelope: e, meta: ch.meta, to: ch.adapter.Recipients(ch.meta, ch.state, in, e)}
	if !h.delivery.begin() {
		return errClosed
	}
	h.queueLive(ch, it)
	return nil
}

// liveQueue holds live envelopes of one channel until what the channel ordered
// before them is delivered. They wait for no other channel.
type liveQueue struct {
	mu    sync.Mutex
	items []liveItem
}

type liveItem struct {
	item
	after *Pending // nil: nothing was on its way
}

// queueLive delivers a live envelope after the channel's last batch. The caller
// holds the channel's lock, so no later batch is ordered meanwhile.
func (h *Hub) queueLive(ch *loadedChannel, it item) {
	q := ch.lives.Load()
	if q == nil {
		q = &liveQueue{}
		ch.lives.Store(q)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, liveItem{it, ch.last})
	h.drainLives(ch, q)
}

// deliverLives delivers what waited for a batch that has ended.
func (h *Hub) deliverLives(ch *loadedChannel) {
	if q := ch.lives.Load(); q != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		h.drainLives(ch, q)
	}
}

func (h *Hub) drainLives(ch *loadedChannel, q *liveQueue) {
	for len(q.items) > 0 && (q.items[0].after == nil || q.items[0].after.finished()) {
		first := q.items[0]
		q.items = q.items[1:]
		if first.after == nil || first.after.err == nil {
			h.dispatchLive(ch, &first.item)
		} else {
			h.stats.lostLive.Add(1) // what it followed was never stored
		}
		h.delivery.finished()
	}
	if len(q.items) == 0 {
		q.items = nil
	}
}

// dispatchLive delivers a live envelope to the connected recipients.
func (h *Hub) dispatchLive(ch *loadedChannel, it *item) {
	shared := &Shared{}
	h.publish(ch, Event{Envelope: it.envelope, Shared: shared, Live: true, Side: it.where == channel.Side})
	for _, id := range it.to {
		m := h.registry.ByID(id)
		if m == nil || ch.seats.Hides(id) {
			continue
		}
		n := &Notice{Envelope: it.envelope, Channel: it.meta, Recipient: id, Dialect: dialectOf(ch.adapter), Live: true, Side: it.where == channel.Side, Shared: shared}
		if err := m.Link.Deliver(n, func() {}); err != nil {
			h.stats.lostLive.Add(1)
		}
	}
}
