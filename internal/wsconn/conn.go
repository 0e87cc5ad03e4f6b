package wsconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"

	"github.com/parley-hub/parley/internal/gate"
)

// Conn is one connection. One goroutine reads; others are started while there
// is work. All methods may be called at any time from any goroutine.
type Conn struct {
	server   *Server
	handler  Handler
	gatherer Gatherer // the handler, if it is one
	id       string
	peer     string
	net      net.Conn
	gate     gate.Gate

	in         reader
	out        queue
	goroutines goroutines

	heard  atomic.Int64 // when anything arrived last
	pinged atomic.Bool
	over   atomic.Bool           // the close frame was written: messages that arrive are dropped
	left   atomic.Bool           // the peer sent its close frame
	cause  atomic.Pointer[error] // why the connection ends, unless the peer closed it
}

// ID returns the name that Accept was given.
func (c *Conn) ID() string { return c.id }

// Handler returns the dialect's side of the connection.
func (c *Conn) Handler() Handler { return c.handler }

// Send queues a frame and never waits. A reader whose queue grows too large is
// disconnected.
func (c *Conn) Send(f Frame) error { return c.out.push(f) }

// SendText queues a text message as Send does.
func (c *Conn) SendText(body []byte) error { return c.out.push(Text(body)) }

// SendWaiting queues a frame once at most half of the queue is taken, so that
// what is sent without waiting always finds room.
func (c *Conn) SendWaiting(ctx context.Context, f Frame) error { return c.out.pushWaiting(ctx, f) }

// Close queues a close frame after all that waits. Nothing can be sent
// afterwards, and messages that still come are dropped once it is written.
func (c *Conn) Close(code Code, reason string) { c.out.close(code, reason, false) }

// CutOff drops all that waits and closes with SlowReader. The close reason is
// the error's fault.Code.
func (c *Conn) CutOff(why error) { c.out.cutOff(why) }

// End makes the reader stop. A *CloseError is sent to the peer at once, before
// queued frames; any other error closes the socket.
func (c *Conn) End(why error) {
	c.cause.CompareAndSwap(nil, &why)
	_ = c.net.SetReadDeadline(time.Unix(1, 0))
}

// Go runs fn on a goroutine that is waited for before Closed, and reports
// whether it was started: after that wait none is.
func (c *Conn) Go(fn func()) bool { return c.goroutines.start(fn) }

// Recover turns a panic into an error that ends this connection only, and logs
// it. It is deferred directly.
func (c *Conn) Recover(err *error) {
	if r := recover(); r != nil {
		*err = &CloseError{Internal, "internal error"}
		c.server.cfg.Log.Error("endpoint frame loop failed", "endpoint_id", c.id, "peer", c.peer,
			"panic", fmt.Sprint(r), "stack", string(debug.Stack()))
	}
}

// attach gives the connection its socket.
func (c *Conn) attach(nc net.Conn) {
	c.net = nc
	c.touch()
	c.in.conn, c.in.source, c.in.state = c, sourceOf(nc), ws.StateServerSide
	c.out.conn = c
}

func (c *Conn) touch() { c.heard.Store(c.server.cfg.Now().UnixNano()) }

// serve reads until the connection ends, and then waits for what works for it.
func (c *Conn) serve() {
	defer c.server.done.Done()
	err := c.read()
	c.handler.ReadingEnded()
	c.sayWhy(err)
	c.goroutines.wait()
	c.handler.Closed()
	if closed := (*peerClosed)(nil); !errors.As(err, &closed) {
		c.linger()
	}
	_ = c.net.Close()
	c.server.remove(c)
}

// read takes messages until there are no more.
func (c *Conn) read() (err error) {
	defer c.Recover(&err)
	for {
		op, payload, err := c.in.next()
		if err != nil {
			c.drained()
			return err
		}
		if c.over.Load() {
			continue
		}
		c.server.stats.messages.Add(1)
		if err := c.gate.Ask(c.server.ctx); err != nil {
			c.drained()
			return &CloseError{TryAgain, err.Error()}
		}
		if err := c.handler.Message(payload, op == ws.OpBinary); err != nil {
			return err
		}
	}
}

// drained calls Drained of a handler that gathers messages.
func (c *Conn) drained() {
	if c.gatherer != nil {
		c.gatherer.Drained()
	}
}

// control answers what belongs to WebSocket itself.
func (c *Conn) control(op ws.OpCode, payload []byte) {
	if op == ws.OpPing {
		_ = c.Send(Frame{control: ws.OpPong, Body: payload})
	}
}

// sayWhy sends the peer the reason why the connection ends, unless the reason
// is internal.
func (c *Conn) sayWhy(err error) {
	if cause := c.cause.Load(); cause != nil {
		err = *cause
	}
	var bad *CloseError
	var closed *peerClosed
	switch {
	case errors.As(err, &bad):
		if bad.Code != Internal {
			c.server.warnings.Warn(c.server.cfg.Log, time.Now(), "endpoint frame loop failed", "endpoint_id", c.id, "peer", c.peer, "error", err)
		}
		c.out.close(bad.Code, bad.Reason, true)
	case errors.As(err, &closed):
		code, reason := closed.code, ""
		if f, ok := c.handler.(Farewell); ok {
			code, reason = f.Farewell()
		}
		c.left.Store(true)
		c.out.close(code, reason, false)
		if c.over.Load() {
			_ = c.net.Close()
		}
	default:
		c.out.abort(ErrClosed)
		_ = c.net.Close()
	}
}

// written is called when nothing more is written: the peer has a moment to
// answer the close frame. A peer that has closed already waits for the end of
// the socket, whatever still works for the connection.
func (c *Conn) written(err error) {
	if err != nil {
		_ = c.net.Close()
		return
	}
	c.over.Store(true)
	if c.left.Load() {
		_ = c.net.Close()
		return
	}
	c.in.endAt(time.Now().Add(closeTimeout))
}

// linger reads for a moment what the peer still sends: closing with unread
// bytes would reset the connection, and the peer could miss the close frame.
func (c *Conn) linger() {
	half, ok := c.net.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.net.SetReadDeadline(time.Now().Add(closeTimeout))
	_, _ = io.CopyN(io.Discard, c.net, int64(c.server.cfg.Limits.FrameBytes))
}

// slow counts and logs that the reader is disconnected. The log tells an
// operator who it is, because the close frame may never arrive. It does not
// wait.
func (c *Conn) slow(err error) {
	c.server.stats.slowReaders.Add(1)
	c.Go(func() {
		attrs := append([]any{"endpoint_id", c.id, "peer", c.peer}, c.handler.LogAttrs()...)
		c.server.warnings.Warn(c.server.cfg.Log, time.Now(), "slow reader cut off", append(attrs, "error", err)...)
	})
}
