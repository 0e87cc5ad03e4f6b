package ag2

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gobwas/ws"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/logsample"
)

// Server serves the protocol to everyone who upgrades to a WebSocket, whatever
// the path. It is an http.Handler.
type Server struct {
	cfg      Config
	upgrader ws.HTTPUpgrader
	stats    counters
	warnings logsample.Limiter
	warned   once // channels whose log is long

	ctx  context.Context // of operations: it outlives connections
	stop context.CancelFunc

	mu       sync.Mutex
	conns    map[*conn]struct{}
	reserved int // being upgraded
	closed   bool
	done     sync.WaitGroup
}

// New makes a server. Close it to end its connections.
func New(cfg Config) (*Server, error) {
	if cfg.Hub == nil {
		return nil, errors.New("ag2: a hub is needed")
	}
	cfg = cfg.withDefaults()
	s := &Server{
		cfg:      cfg,
		upgrader: ws.HTTPUpgrader{Timeout: cfg.Limits.Handshake},
		conns:    map[*conn]struct{}{},
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.done.Go(s.keepAlive)
	return s, nil
}

// ServeHTTP upgrades a request. The connection lives on after it returns.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.reserve() {
		s.stats.refused.Add(1)
		w.Header().Set("Retry-After", "5")
		http.Error(w, fmt.Sprintf("%d connections are open, which is the limit (ag2.limits.connections); try again", s.cfg.Limits.Connections), http.StatusServiceUnavailable)
		return
	}
	c := &conn{
		server: s, id: newID(), peer: s.cfg.Peer(r), operator: s.cfg.Operator(r),
		mirrorsOwn: r.Header.Get(wire.MirrorHeader) == wire.MirrorOwn,
	}
	nc, rw, _, err := s.upgrader.Upgrade(r, w)
	if err != nil {
		s.giveUp()
		// The upgrader has answered the request.
		s.stats.refused.Add(1)
		s.cfg.Log.Debug("upgrade refused", "peer", c.peer.Address, "error", err)
		return
	}
	early := make([]byte, rw.Reader.Buffered())
	_, _ = rw.Reader.Read(early) // from memory
	_ = nc.SetDeadline(time.Time{})
	c.attach(nc)
	if err := c.frames.prime(early); err != nil {
		s.giveUp()
		_ = nc.Close()
		return
	}
	if !s.add(c) {
		refuse(nc)
		return
	}
	// Nothing of the request is kept: an idle connection costs little.
	go c.serve()
}

// shuttingDown is why connections are closed when the server closes.
const shuttingDown = "the hub is shutting down"

// refuse tells a connection that came too late to go away.
func refuse(nc net.Conn) {
	_ = nc.SetWriteDeadline(time.Now().Add(farewell))
	late := closeItem(closeGoingAway, shuttingDown)
	_, _ = nc.Write(append(late.appendHead(nil), late.body...))
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

func (s *Server) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
}

// add takes a connection for which there is room.
func (s *Server) add(c *conn) bool {
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
func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

func (s *Server) all() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		list = append(list, c)
	}
	return list
}

// Close tells every connection to go, and waits until none is left and nothing
// works for one. When the context ends first, what still runs is cancelled.
// Closing again only waits.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, c := range s.all() {
		c.out.close(closeGoingAway, shuttingDown, false)
	}
	gone := make(chan struct{})
	go func() {
		s.done.Wait()
		close(gone)
	}()
	grace := context.AfterFunc(ctx, func() {
		for _, c := range s.all() {
			_ = c.net.Close()
		}
	})
	defer grace()
	// Nobody is left to tell of what still waits for others.
	s.stop()
	<-gone
	return ctx.Err()
}

// context of an operation asked for by a connection.
func (s *Server) context(p identity.Peer) context.Context { return identity.WithPeer(s.ctx, p) }
