package ag2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gobwas/ws"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

func newID() string { return envelope.NewID() }

// conn is one connection: an endpoint of the hub, and the identities that were
// proved on it. One goroutine reads; others come and go with the work.
type conn struct {
	server   *Server
	id       string
	net      net.Conn
	peer     identity.Peer
	operator bool

	frames frames
	out    outbound
	crew   crew
	inbox  inbox
	posts  posts

	heard  atomic.Int64 // when anything arrived last
	pinged atomic.Bool
	over   atomic.Bool           // nothing more is answered
	cause  atomic.Pointer[error] // why the connection ends, if not the peer's wish

	openings atomic.Int64

	mu    sync.Mutex
	hosts map[string]*host // identities proved here, by id
}

// host is an identity on a connection.
type host struct {
	tail []byte // of its notifies
}

// attach gives the connection its socket.
func (c *conn) attach(nc net.Conn) {
	limits := &c.server.cfg.Limits
	c.net = nc
	c.heard.Store(time.Now().UnixNano())
	c.frames = frames{
		conn: nc, source: sourceOf(nc), limit: limits.FrameBytes, patience: limits.Message,
		heard:   func() { c.heard.Store(time.Now().UnixNano()) },
		stopped: func() bool { return c.cause.Load() != nil },
		control: c.control,
	}
	c.out = outbound{
		conn: nc, limit: limits.QueueBytes, timeout: limits.Write, stats: &c.server.stats,
		start: c.crew.start, ended: c.written,
	}
	c.inbox.limit = limits.Requests
}

// serve reads until the connection ends, and then waits for what works for it.
func (c *conn) serve() {
	defer c.server.done.Done()
	err := c.read()
	c.unbind()
	c.farewell(err)
	c.inbox.close()
	c.crew.dismiss()
	c.unbind() // from what was bound meanwhile
	if closed := (*peerClosed)(nil); !errors.As(err, &closed) {
		c.linger()
	}
	_ = c.net.Close()
	c.server.remove(c)
}

// written is called when nothing more is written: the peer has a moment to
// answer the close frame.
func (c *conn) written(err error) {
	if err != nil {
		_ = c.net.Close()
		return
	}
	c.over.Store(true)
	c.frames.endAt(time.Now().Add(farewell))
}

// linger reads for a moment what the peer still sends: closing with unread
// bytes would take the close frame from it.
func (c *conn) linger() {
	half, ok := c.net.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.net.SetReadDeadline(time.Now().Add(farewell))
	_, _ = io.CopyN(io.Discard, c.net, int64(c.server.cfg.Limits.FrameBytes))
}

// read takes messages until there are no more.
func (c *conn) read() (err error) {
	defer c.recovered(&err)
	for {
		op, payload, err := c.frames.next()
		if err != nil {
			return err
		}
		if c.over.Load() {
			continue
		}
		c.server.stats.framesIn.Add(1)
		if op == ws.OpBinary && !utf8.Valid(payload) {
			c.malformed(errors.New("a binary message is not UTF-8"))
			continue
		}
		if !c.inbox.put(payload, func() { c.crew.start(c.work) }) {
			return errClosed
		}
	}
}

// recovered turns a panic into the end of this connection only.
func (c *conn) recovered(err *error) {
	if r := recover(); r != nil {
		*err = &violation{closeInternal, "internal error"}
		c.server.cfg.Log.Error("endpoint frame loop failed", "endpoint_id", c.id, "peer", c.peer.Address,
			"panic", fmt.Sprint(r), "stack", string(debug.Stack()))
	}
}

// control answers what belongs to WebSocket itself.
func (c *conn) control(op ws.OpCode, payload []byte) {
	if op == ws.OpPing {
		_ = c.out.push(item{op: ws.OpPong, body: payload})
	}
}

// end makes the reader stop, if it has not; what is wrong is told to the peer.
func (c *conn) end(why error) {
	c.cause.CompareAndSwap(nil, &why)
	_ = c.net.SetReadDeadline(time.Unix(1, 0))
}

// farewell tells the peer why the connection ends, if it may be told.
func (c *conn) farewell(err error) {
	if cause := c.cause.Load(); cause != nil {
		err = *cause
	}
	var bad *violation
	var closed *peerClosed
	switch {
	case errors.As(err, &bad):
		if bad.code != closeInternal {
			c.server.noise.warn(c.server.cfg.Log, time.Now(), "endpoint frame loop failed", "endpoint_id", c.id, "peer", c.peer.Address, "error", err)
		}
		c.out.close(bad.code, bad.reason, true)
	case errors.As(err, &closed):
		c.out.close(closed.code, "", false)
	default:
		c.out.abort(errClosed)
		_ = c.net.Close()
	}
}

// malformed counts and logs a frame that is dropped.
func (c *conn) malformed(err error) {
	c.server.stats.malformed.Add(1)
	c.server.noise.warn(c.server.cfg.Log, time.Now(), "frame dropped", "endpoint_id", c.id, "peer", c.peer.Address, "error", err)
}

// ID names the endpoint.
func (c *conn) ID() string { return c.id }

// MayActFor reports whether an identity was proved on this connection.
func (c *conn) MayActFor(agent string) bool {
	return c.server.cfg.TrustClients || c.host(agent) != nil
}

func (c *conn) host(agent string) *host {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hosts[agent]
}

// adopt notes that an identity was proved here.
func (c *conn) adopt(agent string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit := c.server.cfg.Limits.Identities; len(c.hosts) >= limit && c.hosts[agent] == nil {
		return fault.New(fault.TooLarge, "this connection has %d identities, which is the limit (ag2.limits.identities); open another", limit)
	}
	if c.hosts == nil {
		c.hosts = map[string]*host{}
	}
	if c.hosts[agent] == nil {
		c.hosts[agent] = &host{tail: wire.AppendNotifyTail(nil, agent)}
	}
	return nil
}

func (c *conn) disown(agent string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.hosts, agent)
}

// identities lists who was proved here.
func (c *conn) identities() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]string, 0, len(c.hosts))
	for id := range c.hosts {
		list = append(list, id)
	}
	return list
}

func (c *conn) unbind() { c.server.cfg.Hub.Unbind(c, c.identities()...) }

// Deliver queues a notice; the hub calls it, and must not be made to wait.
func (c *conn) Deliver(n *hub.Notice) error {
	i, err := c.notice(n)
	if err != nil || i.tail == nil {
		return err
	}
	return c.out.push(i)
}

// Replay queues a notice when there is room.
func (c *conn) Replay(ctx context.Context, n *hub.Notice) error {
	i, err := c.notice(n)
	if err != nil || i.tail == nil {
		return nil // the rest is not held back for one that cannot be sent
	}
	return c.out.pushWaiting(ctx, i)
}

// notice makes the frame of a delivery; its envelope is encoded once for all
// readers. Without a tail there is nothing to send.
func (c *conn) notice(n *hub.Notice) (item, error) {
	if impostor(n.Envelope) {
		return item{}, nil
	}
	h := c.host(n.Recipient)
	if h == nil {
		return item{}, nil // unregistered a moment ago
	}
	body := n.Shared.Bytes("ag2", func() []byte { return wire.AppendEnvelope(nil, n.Envelope) })
	if size := len(wire.NotifyHead) + len(body) + len(h.tail); size > wire.MaxFrame {
		c.server.stats.oversized.Add(1)
		return item{}, fault.New(fault.TooLarge, "envelope %s makes a frame of %d bytes; clients take at most %d", n.Envelope.ID, size, wire.MaxFrame)
	}
	c.server.stats.deliveries.Add(1)
	return item{op: ws.OpText, body: body, tail: h.tail, channel: n.Envelope.Channel, rank: rank(n)}, nil
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
