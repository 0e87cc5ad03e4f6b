package ag2

import (
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

	"github.com/parley-hub/parley/envelope"
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
	operator func() bool // nil: never was one
	// mirrorsOwn: its tasks are told to their channels by the client itself.
	mirrorsOwn bool

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

// attach gives the connection its socket.
func (c *conn) attach(nc net.Conn) {
	limits := &c.server.cfg.Limits
	c.net = nc
	c.heard.Store(c.server.cfg.Now().UnixNano())
	c.frames = frames{
		conn: nc, source: sourceOf(nc), limit: limits.FrameBytes, patience: limits.Message,
		heard:   func() { c.heard.Store(c.server.cfg.Now().UnixNano()) },
		stopped: func() bool { return c.cause.Load() != nil },
		control: c.control,
	}
	c.out = outbound{
		conn: nc, limit: limits.QueueBytes, timeout: limits.Write, stats: &c.server.stats,
		start: c.crew.start, ended: c.written, show: c.showOut, slow: c.slow,
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
		c.showIn(payload)
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
			c.server.warnings.Warn(c.server.cfg.Log, time.Now(), "endpoint frame loop failed", "endpoint_id", c.id, "peer", c.peer.Address, "error", err)
		}
		c.out.close(bad.code, bad.reason, true)
	case errors.As(err, &closed):
		c.out.close(closed.code, "", false)
	default:
		c.out.abort(errClosed)
		_ = c.net.Close()
	}
}

// slow counts and logs that the reader is cut off. Who it is tells an operator
// what the close frame, which may never arrive, tells the peer.
func (c *conn) slow(err error) {
	c.server.stats.slowReaders.Add(1)
	c.crew.start(func() {
		c.server.warnings.Warn(c.server.cfg.Log, time.Now(), "slow reader cut off", "endpoint_id", c.id, "peer", c.peer.Address, "agents", c.identities(), "error", err)
	})
}

// malformed counts and logs a frame that is dropped.
func (c *conn) malformed(err error) {
	c.server.stats.malformed.Add(1)
	c.server.warnings.Warn(c.server.cfg.Log, time.Now(), "frame dropped", "endpoint_id", c.id, "peer", c.peer.Address, "error", err)
}

// ID names the endpoint.
func (c *conn) ID() string { return c.id }

func (c *conn) unbind() { c.server.cfg.Hub.Unbind(c, c.identities()...) }
