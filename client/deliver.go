package client

import (
	"context"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
)

// deliver takes a delivery. A delivery that waits or is being worked on is not
// taken twice; one that was acknowledged is acknowledged again.
func (i *Identity) deliver(e *envelope.Envelope) {
	i.mu.Lock()
	defer i.mu.Unlock()
	close(i.moved)
	i.moved = make(chan struct{})
	switch {
	case i.err != nil || i.lost || i.busy[e.ID]:
		return
	case i.recent.has(e.ID):
		i.client.begin(func() { i.receipt(e, wire.Ack, "") })
		return
	case len(i.queue) >= i.client.opts.Deliveries:
		// Everything after it is left too: acknowledging one of a channel
		// acknowledges those before it.
		i.lost = true
		return
	}
	i.busy[e.ID] = true
	i.queue = append(i.queue, e)
	i.signal()
}

func (i *Identity) signal() {
	select {
	case i.arrived <- struct{}{}:
	default:
	}
}

// fail ends the identity: Receive returns the error.
func (i *Identity) fail(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err == nil {
		i.err = err
	}
	i.signal()
}

// Receive waits for the next delivery. Those of one channel come in the order
// of its log. After a reconnect what was not acknowledged comes again.
func (i *Identity) Receive(ctx context.Context) (*agent.Delivery, error) {
	for {
		e, err := i.pop()
		if err != nil {
			return nil, err
		}
		if e != nil {
			return &agent.Delivery{
				Envelope: e,
				Ack:      func(context.Context) error { return i.acknowledge(e, wire.Ack, "") },
				Nack:     func(_ context.Context, reason string) error { return i.acknowledge(e, wire.Nack, reason) },
			}, nil
		}
		select {
		case <-i.arrived:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (i *Identity) pop() (*envelope.Envelope, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.queue) > 0 {
		e := i.queue[0]
		i.queue = i.queue[1:]
		if len(i.queue) > 0 {
			i.signal()
		}
		return e, nil
	}
	if i.err != nil {
		i.signal() // for the other waiters
		return nil, i.err
	}
	if i.lost && !i.asking {
		i.asking = true
		i.client.begin(i.requestReplay)
	}
	return nil, nil
}

// requestReplay makes the hub replay everything that is not acknowledged. Without a
// connection, the next connection does so.
func (i *Identity) requestReplay() {
	if i.client.greet(&hello{identity: i, reconnected: true}, "") != nil {
		i.mu.Lock()
		i.asking = false
		i.mu.Unlock()
	}
}

// welcome marks where a replay begins: from here on nothing is missing.
func (i *Identity) welcome() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lost, i.asking = false, false
}

// acknowledge ends a delivery. Without a connection it is remembered, and sent
// when the hub delivers again.
func (i *Identity) acknowledge(e *envelope.Envelope, status, reason string) error {
	i.mu.Lock()
	delete(i.busy, e.ID)
	if status == wire.Ack {
		i.recent.add(e.ID)
	}
	i.mu.Unlock()
	i.receipt(e, status, reason)
	return nil
}

func (i *Identity) receipt(e *envelope.Envelope, status, reason string) {
	c := i.client
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn == nil {
		return
	}
	c.write(conn, wire.AppendReceipt(nil, &wire.Receipt{
		Envelope: e.ID, Status: status, Recipient: i.id, Channel: e.Channel, Reason: reason,
	}))
}

// recent is a set of the last ids added, bounded.
type recent struct {
	ids   map[string]bool
	order []string
	next  int
}

// keepRecent is how many acknowledged envelopes are remembered.
const keepRecent = 8192

func (r *recent) has(id string) bool { return r.ids[id] }

func (r *recent) add(id string) {
	if r.ids == nil {
		r.ids = map[string]bool{}
	}
	if r.ids[id] {
		return
	}
	r.ids[id] = true
	if len(r.order) < keepRecent {
		r.order = append(r.order, id)
		return
	}
	delete(r.ids, r.order[r.next])
	r.order[r.next] = id
	r.next = (r.next + 1) % keepRecent
}
