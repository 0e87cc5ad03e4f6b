package ag2

import (
	"context"
	"errors"
	"net/http"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/logsample"
	"github.com/parley-hub/parley/internal/wsconn"
)

// Server serves the protocol to every WebSocket upgrade, on any path. It is an
// http.Handler.
type Server struct {
	cfg      Config
	conns    *wsconn.Server
	stats    counters
	warnings logsample.Limiter
	warned   once // channels whose log is long
	folds    foreignFolds
}

// New returns a server. Close it to end its connections.
func New(cfg Config) (*Server, error) {
	if cfg.Hub == nil {
		return nil, errors.New("ag2: a hub is needed")
	}
	cfg = cfg.withDefaults()
	transport := wsconn.Config{Keys: "ag2.limits", Log: cfg.Log, Now: cfg.Now, Limits: cfg.Limits.Limits}
	if cfg.DebugFrames {
		transport.OnQueue = showOut
	}
	return &Server{cfg: cfg, conns: wsconn.New(transport)}, nil
}

// ServeHTTP upgrades a request. The connection outlives the call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	peer := s.cfg.Peer(r)
	s.conns.Accept(w, r, envelope.NewID(), peer.Address, func(ws *wsconn.Conn) wsconn.Handler {
		return &conn{
			server: s, ws: ws, peer: peer, ctx: s.context(peer), operator: s.cfg.Operator(r), prove: s.cfg.Prove(r),
			mirrorsOwn: r.Header.Get(wire.MirrorHeader) == wire.MirrorOwn,
			inbox:      inbox{limit: s.cfg.Limits.Requests},
		}
	})
}

// context returns the context of an operation for a connection. It outlives the
// connection.
func (s *Server) context(p identity.Peer) context.Context {
	return identity.WithPeer(s.conns.Context(), p)
}
