package wsconn

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gobwas/ws"

	"github.com/parley-hub/parley/internal/gate"
	"github.com/parley-hub/parley/internal/logsample"
)

// Server upgrades requests and owns the connections until they end.
type Server struct {
	cfg      Config
	upgrader ws.HTTPUpgrader
	stats    counters
	warnings logsample.Limiter // of slow readers
	refusals logsample.Limiter

	ctx  context.Context
	stop context.CancelFunc

	mu       sync.Mutex
	conns    map[*Conn]struct{}
	reserved int // being upgraded
	closed   bool
	done     sync.WaitGroup
}

// New makes a server. Close it to end its connections.
func New(cfg Config) *Server {
	cfg = cfg.withDefaults()
	s := &Server{
		cfg:      cfg,
		upgrader: ws.HTTPUpgrader{Timeout: cfg.Limits.Handshake},
		conns:    map[*Conn]struct{}{},
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.done.Go(s.keepAlive)
	return s
}

// Context returns a context that ends when the server closes, after every
// connection was told to end. Operations that outlive a connection run with it.
func (s *Server) Context() context.Context { return s.ctx }

// Handler is the dialect's side of one connection.
type Handler interface {
	// Message takes one message, which is the handler's to keep; text is valid
	// UTF-8. Messages come one after the other. While Message waits, nothing
	// more is read. An error ends the connection; a *CloseError says how.
	Message(payload []byte, binary bool) error
	// ReadingEnded is called once, after the last message. Goroutines that
	// Conn.Go started are waited for afterwards.
	ReadingEnded()
	// Closed is called once, when these goroutines have ended.
	Closed()
	// LogAttrs returns what a log line about the connection should contain
	// besides its id and its peer.
	LogAttrs() []any
}

// Gatherer is a Handler that may delay its work on a message until it has all
// that were read from the socket together.
type Gatherer interface {
	Handler
	// Drained is called after the last of them, and before ReadingEnded.
	Drained()
}

// Accept upgrades a request or refuses it. open makes the handler, and must not use
// the connection yet. The connection stays open after Accept returns. The id and the
// peer are for the log. Accept reports whether the connection is open and in All.
func (s *Server) Accept(w http.ResponseWriter, r *http.Request, id, peer string, open func(*Conn) Handler) bool {
	if !s.reserve() {
		why := fmt.Sprintf("%d connections are open, which is the limit (%s.connections); try again", s.cfg.Limits.Connections, s.cfg.Keys)
		s.refused(peer, why)
		w.Header().Set("Retry-After", "5")
		http.Error(w, why, http.StatusServiceUnavailable)
		return false
	}
	c := &Conn{server: s, id: id, peer: peer, gate: gate.Of(r.Context())}
	c.handler = open(c)
	c.gatherer, _ = c.handler.(Gatherer)
	upgrader := s.upgrader
	upgrader.Header = w.Header() // headers that harden every answer
	nc, rw, _, err := upgrader.Upgrade(r, w)
	if err != nil {
		s.release()
		s.refused(peer, err.Error())
		// The upgrader has answered the request, and leaves the connection
		// open: nobody else closes it.
		if nc != nil {
			_ = nc.Close()
		}
		return false
	}
	early := make([]byte, rw.Reader.Buffered())
	_, _ = rw.Reader.Read(early) // from memory
	_ = nc.SetDeadline(time.Time{})
	c.attach(nc)
	if err := c.in.prime(early); err != nil {
		s.release()
		_ = nc.Close()
		return false
	}
	if !s.add(c) {
		refuse(nc)
		return false
	}
	// Nothing of the request is kept: an idle connection costs little.
	go c.serve()
	return true
}

// refused counts and logs an upgrade that is not made.
func (s *Server) refused(peer, why string) {
	s.stats.refused.Add(1)
	s.refusals.Warn(s.cfg.Log, time.Now(), "upgrade refused", "peer", peer, "error", why)
}

// shuttingDown is the reason of close frames when the server closes.
const shuttingDown = "the hub is shutting down"

// refuse sends a close frame to a connection that was upgraded while the
// server closed.
func refuse(nc net.Conn) {
	_ = nc.SetWriteDeadline(time.Now().Add(closeTimeout))
	late := closeFrame(GoingAway, shuttingDown)
	_, _ = nc.Write(append(late.appendHead(nil), late.Body...))
	_ = nc.Close()
}

// reserve makes room for a connection before it is upgraded.
func (s *Server) reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.conns)+s.reserved >= s.cfg.Limits.Connections {
		return false
	}
	s.reserved++
	return true
}

func (s *Server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
}

// add takes a connection for which room was reserved.
func (s *Server) add(c *Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
	if s.closed {
		return false
	}
	s.conns[c] = struct{}{}
	s.done.Add(1)
	s.stats.opened.Add(1)
	return true
}

// remove forgets a connection whose socket is closed.
func (s *Server) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// All returns the connections that are open.
func (s *Server) All() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}

// Close tells every connection to end, and waits until none is left and no
// goroutine works for one. When the context ends first, the sockets are
// closed. Closing again only waits.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, c := range s.All() {
		c.Close(GoingAway, shuttingDown)
	}
	gone := make(chan struct{})
	go func() {
		s.done.Wait()
		close(gone)
	}()
	grace := context.AfterFunc(ctx, func() {
		for _, c := range s.All() {
			_ = c.net.Close()
		}
	})
	defer grace()
	// Operations that still wait have nobody left to answer.
	s.stop()
	<-gone
	return ctx.Err()
}
