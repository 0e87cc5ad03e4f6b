package ag2

import (
	"context"
	"time"

	"github.com/gobwas/ws"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// Deliver queues a notice; the hub calls it, and must not be made to wait.
func (c *conn) Deliver(n *hub.Notice) error {
	i, fresh, err := c.notice(n)
	if err != nil || i.tail == nil {
		return err
	}
	if fresh {
		if kept, err := c.keepBack(n, i); kept {
			return err
		}
	}
	return c.out.push(i)
}

// keepBack keeps what is for an identity whose registration is not answered.
func (c *conn) keepBack(n *hub.Notice, i item) (kept bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[n.Recipient]
	if h == nil {
		return false, nil
	}
	if n.Envelope.Type == envelope.TypeInvite && time.Since(h.born) < newFor {
		c.remind(n.Recipient, n.Envelope.Channel, i, invitations)
	}
	if !h.held {
		return false, nil
	}
	if len(h.kept) >= maxKept {
		err := fault.New(fault.SlowReader, "more than %d deliveries arrived before a registration was answered", maxKept)
		c.CutOff(err)
		return true, err
	}
	h.kept = append(h.kept, i)
	return true, nil
}

// CutOff ends the connection, which may come back and resume from its cursor.
func (c *conn) CutOff(why error) { c.out.cutOff(why) }

// Replay queues a notice when there is room.
func (c *conn) Replay(ctx context.Context, n *hub.Notice) error {
	i, _, err := c.notice(n)
	if err != nil || i.tail == nil {
		return nil // the rest is not held back for one that cannot be sent
	}
	return c.out.pushWaiting(ctx, i)
}

// notice makes the frame of a delivery; its envelope is encoded once for all
// readers. Without a tail there is nothing to send; fresh asks to look whether
// the recipient may have it yet.
func (c *conn) notice(n *hub.Notice) (i item, fresh bool, err error) {
	if impostor(n.Envelope) {
		return item{}, false, nil
	}
	tail, held := c.tail(n.Recipient)
	if tail == nil {
		return item{}, false, nil // unregistered a moment ago
	}
	body := n.Shared.Bytes("ag2", func() []byte { return wire.AppendEnvelope(nil, n.Envelope) })
	if size := len(wire.NotifyHead) + len(body) + len(tail); size > wire.MaxFrame {
		c.server.stats.oversized.Add(1)
		return item{}, false, fault.New(fault.TooLarge, "envelope %s makes a frame of %d bytes; clients take at most %d", n.Envelope.ID, size, wire.MaxFrame)
	}
	c.server.stats.deliveries.Add(1)
	i = item{op: ws.OpText, body: body, tail: tail, channel: n.Envelope.Channel, rank: rank(n)}
	return i, held || n.Envelope.Type == envelope.TypeInvite, nil
}

// rank is the priority of a live delivery. A replay stays in its place.
func rank(n *hub.Notice) int {
	if n.Replayed {
		return unranked
	}
	return n.Envelope.Priority.Rank()
}

// impostor reports whether an envelope only looks like one of the hub's:
// clients act on these, so they get them from the hub alone.
func impostor(e *envelope.Envelope) bool {
	switch e.Type {
	case envelope.TypeOpened, envelope.TypeClosed, envelope.TypeExpired:
		return !hub.HubMade(e)
	}
	return false
}
