package ag2

import (
	"context"
	"time"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/wsconn"
)

// Deliver queues a notice. It must not wait, because the hub calls it. AG2's
// clients have no live envelopes. A text of another dialect's channel is read from
// that channel's log.
func (c *conn) Deliver(n *hub.Notice) error {
	switch {
	case n.Live:
		return nil
	case n.Dialect != "":
		woken := news{meta: n.Channel}
		if !n.Side { // a live envelope has no position in the log
			woken.only = n.Envelope
		}
		return c.feeds.wake(c, n.Recipient, woken, n.Envelope.ID, "")
	}
	f, fresh, err := c.notice(n)
	if err != nil || f.Tail == nil {
		return err
	}
	if fresh {
		if kept, err := c.holdBack(n, f); kept {
			return err
		}
	}
	return c.ws.Send(f)
}

// holdBack holds back a frame for an identity whose registration is not answered
// yet.
func (c *conn) holdBack(n *hub.Notice, f wsconn.Frame) (kept bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[n.Recipient]
	if h == nil {
		return false, nil
	}
	if n.Envelope.Type == envelope.TypeInvite && time.Since(h.born) < newFor {
		c.remind(n.Recipient, n.Envelope.Channel, f, invitations)
	}
	if !h.held {
		return false, nil
	}
	if len(h.kept) >= maxKept {
		err := fault.New(fault.SlowReader, "more than %d deliveries arrived before a registration was answered", maxKept)
		c.CutOff(err)
		return true, err
	}
	h.kept = append(h.kept, f)
	return true, nil
}

// CutOff ends the connection. The client may reconnect and resume from its cursor.
func (c *conn) CutOff(why error) { c.ws.CutOff(why) }

// Replay waits for space and queues a notice.
func (c *conn) Replay(ctx context.Context, n *hub.Notice) error {
	f, _, err := c.notice(n)
	if err != nil || f.Tail == nil {
		return nil // a notice that cannot be sent does not block the rest
	}
	return c.ws.SendWaiting(ctx, f)
}

// notice makes the frame of a delivery. The envelope is encoded once for all
// readers. Without a tail there is nothing to send. Fresh is true if the
// recipient's registration may not be answered yet.
func (c *conn) notice(n *hub.Notice) (f wsconn.Frame, fresh bool, err error) {
	if impostor(n.Envelope) {
		return wsconn.Frame{}, false, nil
	}
	tail, held := c.tail(n.Recipient)
	if tail == nil {
		return wsconn.Frame{}, false, nil // the recipient was just unregistered
	}
	body := n.Shared.Bytes(dialectName, func() []byte { return wire.AppendEnvelope(nil, n.Envelope) })
	if size := len(wire.NotifyHead) + len(body) + len(tail); size > wire.MaxFrame {
		c.server.stats.oversized.Add(1)
		return wsconn.Frame{}, false, fault.New(fault.TooLarge, "envelope %s makes a frame of %d bytes; clients take at most %d", n.Envelope.ID, size, wire.MaxFrame)
	}
	c.server.stats.deliveries.Add(1)
	f = wsconn.Frame{Head: wire.NotifyHead, Body: body, Tail: tail, Stream: n.Envelope.Channel, Priority: priority(n), Now: n.Alone}
	return f, held || n.Envelope.Type == envelope.TypeInvite, nil
}

// priority returns the priority of a live delivery. Replayed deliveries stay in
// order.
func priority(n *hub.Notice) wsconn.Priority {
	switch {
	case n.Replayed:
		return wsconn.Fixed
	case n.Envelope.Priority == envelope.Urgent:
		return wsconn.High
	case n.Envelope.Priority == envelope.Background:
		return wsconn.Low
	}
	return wsconn.Ordinary
}

// impostor reports whether an envelope only looks like one of the hub's own.
// Clients act on the hub's envelopes, so only the hub may send them.
func impostor(e *envelope.Envelope) bool {
	switch e.Type {
	case envelope.TypeOpened, envelope.TypeClosed, envelope.TypeExpired:
		return !hub.HubMade(e)
	}
	return false
}
