package client

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/loop"
)

// Options of a client. The zero value of each field is a sensible one.
type Options struct {
	HTTP   *http.Client // for the handshake, with the TLS that the hub needs; nil: http.DefaultClient
	Header http.Header  // for the handshake
	Log    *slog.Logger // nil: slog.Default()

	// Timeout bounds each call whose context has no deadline; 0: 35 s.
	Timeout time.Duration
	// Backoff is the first wait before connecting again, doubled up to
	// MaxBackoff; 0: 100 ms and 5 s.
	Backoff    time.Duration
	MaxBackoff time.Duration
	// Ping is how often the connection is tested, and how long that may take;
	// 0: 20 s.
	Ping time.Duration
	// Deliveries is how many may wait to be received by one identity; 0:
	// 4,096. Those past it are delivered again when there is room.
	Deliveries int
	// Again returns the hub's address before each reconnect; nil: the address
	// does not change.
	Again func() string
}

func (o Options) withDefaults() Options {
	o.Log = cmp.Or(o.Log, slog.Default())
	o.Timeout = cmp.Or(o.Timeout, 35*time.Second)
	o.Backoff = cmp.Or(o.Backoff, 100*time.Millisecond)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, 5*time.Second)
	o.Ping = cmp.Or(o.Ping, 20*time.Second)
	o.Deliveries = cmp.Or(o.Deliveries, 4096)
	return o
}

// Client is a connection to a hub that comes back when it is lost. Safe for
// concurrent use.
type Client struct {
	at   addresses // used only by the goroutine that connects
	opts Options

	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup

	// greeting keeps hellos in the order in which their answers are expected.
	greeting sync.Mutex

	mu         sync.Mutex
	conn       *websocket.Conn // nil while there is none
	calls      map[string]*call
	asked      uint64   // calls so far
	hellos     []*hello // sent and not answered, in order
	identities map[string]*Identity
	reconnects int
	endpoint   string // what the hub calls this connection
}

var errGone = fault.New(fault.Unavailable, "the client is closed")

// Dial connects to a hub, such as ws://127.0.0.1:7440. It fails if that fails at
// once; later it connects again by itself until Close. For a hub with several nodes,
// url lists some of their addresses, separated by commas: the client finds the node
// that serves, and follows it when that changes.
func Dial(ctx context.Context, url string, o Options) (*Client, error) {
	c := &Client{at: addressesOf(url), opts: o.withDefaults(), calls: map[string]*call{}, identities: map[string]*Identity{}}
	c.ctx, c.stop = context.WithCancel(context.Background())
	conn, err := c.find(ctx)
	if err != nil {
		c.stop()
		return nil, err
	}
	c.connected(conn)
	c.done.Go(func() { c.run(conn) })
	return c, nil
}

// Close ends the connection. Identities stay registered; calls in flight fail.
func (c *Client) Close() error {
	c.mu.Lock()
	conn := c.conn
	c.stop() // under the lock: nothing new is begun
	c.mu.Unlock()
	if conn != nil {
		_ = conn.Close(websocket.StatusNormalClosure, "")
	}
	c.done.Wait()
	return nil
}

// Endpoint returns the hub's name for the connection, once an identity has
// attached on it.
func (c *Client) Endpoint() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endpoint
}

// Reconnects returns how often the connection was lost and made again.
func (c *Client) Reconnects() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reconnects
}

// nodePatience is how long one of several nodes has to answer a handshake.
const nodePatience = 5 * time.Second

func (c *Client) dial(ctx context.Context) (*websocket.Conn, error) {
	header := c.opts.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	// Our agents report tasks to their channels themselves.
	header.Set(wire.MirrorHeader, wire.MirrorOwn)
	url := c.at.now
	if len(c.at.given) > 1 { // so that a node that hangs does not keep the client from the others
		bounded, cancel := context.WithTimeout(ctx, min(c.opts.Ping, nodePatience))
		defer cancel()
		ctx = bounded
	}
	conn, answer, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: c.opts.HTTP, HTTPHeader: header}) //nolint:bodyclose // the library closes it
	if standing := c.at.look(answer, err); standing != nil {
		if err == nil {
			_ = conn.CloseNow()
		}
		return nil, standing
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "no connection to %s: %v", url, err)
	}
	conn.SetReadLimit(wire.MaxFrame + 1)
	return conn, nil
}

// run serves a connection, and the ones that follow it, until Close.
func (c *Client) run(conn *websocket.Conn) {
	for {
		err := c.serve(conn)
		c.disconnected(err)
		if conn = c.redial(); conn == nil {
			c.abandon()
			return
		}
		c.mu.Lock()
		c.reconnects++
		c.mu.Unlock()
		c.connected(conn)
	}
}

// redial connects again, waiting longer each time; nil after Close.
func (c *Client) redial() *websocket.Conn {
	for wait := c.opts.Backoff; c.ctx.Err() == nil; wait = min(2*wait, c.opts.MaxBackoff) {
		// The wait is random, so that the clients of a restarted hub do not all
		// reconnect at once.
		jitter := time.Duration(rand.Int64N(int64(wait)/2 + 1))
		if loop.Pause(c.ctx, wait/2+jitter) != nil {
			return nil
		}
		if c.opts.Again != nil {
			c.at = addressesOf(c.opts.Again())
		}
		ctx, cancel := context.WithTimeout(c.ctx, c.opts.Timeout)
		conn, err := c.dial(ctx)
		cancel()
		if err == nil {
			return conn
		}
		c.opts.Log.Info("hub is not reachable, trying again", "url", c.at.now, "error", err)
	}
	return nil
}

// serve reads frames until the connection ends.
func (c *Client) serve(conn *websocket.Conn) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.done.Go(func() { c.keepAlive(ctx, conn) })
	defer func() { _ = conn.CloseNow() }()
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		frame, err := wire.Decode(data)
		if err != nil {
			c.opts.Log.Warn("frame dropped", "error", err)
			continue
		}
		c.handle(frame)
	}
}

// keepAlive notices a peer that is gone without closing the connection.
func (c *Client) keepAlive(ctx context.Context, conn *websocket.Conn) {
	ticker := time.NewTicker(c.opts.Ping)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			pong, cancel := context.WithTimeout(ctx, c.opts.Ping)
			err := conn.Ping(pong)
			cancel()
			if err != nil {
				_ = conn.CloseNow()
				return
			}
		}
	}
}

// begin runs fn in a new goroutine, unless the client is closed.
func (c *Client) begin(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() == nil {
		c.done.Go(fn)
	}
}

func (c *Client) handle(frame wire.Frame) {
	switch f := frame.(type) {
	case *wire.Response:
		c.answered(f)
	case *wire.Notify:
		c.notified(f)
	case *wire.Welcome:
		c.mu.Lock()
		c.endpoint = f.Endpoint
		c.mu.Unlock()
		c.greeted(nil)
	case *wire.Refusal:
		c.greeted(wire.ErrorOf(f.Code, f.Message))
	}
}

func (c *Client) notified(n *wire.Notify) {
	e, err := wire.DecodeEnvelope(n.Envelope)
	if err != nil {
		c.opts.Log.Warn("delivery dropped", "error", err)
		return
	}
	c.mu.Lock()
	i := c.identities[n.Recipient]
	c.mu.Unlock()
	if i != nil {
		i.deliver(e)
	}
}

// write sends a frame; the reader notices a failure.
func (c *Client) write(conn *websocket.Conn, frame []byte) {
	ctx, cancel := context.WithTimeout(c.ctx, c.opts.Timeout)
	defer cancel()
	if err := conn.Write(ctx, websocket.MessageText, frame); err != nil {
		_ = conn.CloseNow()
	}
}

// connected sends a hello for every identity, and then what waits.
func (c *Client) connected(conn *websocket.Conn) {
	c.greeting.Lock()
	defer c.greeting.Unlock()
	c.mu.Lock()
	c.conn = conn
	var frames [][]byte
	for _, i := range c.identities {
		h := &hello{identity: i, reconnected: true}
		c.hellos = append(c.hellos, h)
		frames = append(frames, i.helloFrame(""))
	}
	waiting := slices.SortedFunc(maps.Values(c.calls), func(a, b *call) int { return cmp.Compare(a.number, b.number) })
	for _, call := range waiting {
		call.sent = true
		frames = append(frames, call.frame)
	}
	c.mu.Unlock()
	for _, frame := range frames {
		c.write(conn, frame)
	}
}

// disconnected fails what cannot be sent again.
func (c *Client) disconnected(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = nil
	lost := fault.Wrap(fault.Unavailable, err, "the connection was lost; whether the hub did this is not known: %v", err)
	for id, call := range c.calls {
		if call.sent && !call.retryable {
			delete(c.calls, id)
			call.end(nil, lost)
		}
	}
	for _, h := range c.hellos {
		h.end(lost)
	}
	c.hellos = nil
	if c.ctx.Err() == nil {
		c.opts.Log.Info("connection lost", "error", err)
	}
}

// abandon fails everything after Close.
func (c *Client) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, call := range c.calls {
		delete(c.calls, id)
		call.end(nil, errGone)
	}
	for _, i := range c.identities {
		i.fail(errGone)
	}
}
