// Package hpd serves HPD's hosted API: sessions, branches, runs, and live and
// durable events over server-sent events and WebSocket. The routes exist under two
// names, branches and threads; internally there is only one. The package writes to
// the hub only, and never decides what an event means: package wire reads and
// writes events, and the branch adapter enforces their order.
package hpd

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/internal/logsample"
	"github.com/parley-hub/parley/internal/wsconn"
	"github.com/parley-hub/parley/server/dialect"
)

// Server serves the API. It is an http.Handler for everything below its prefix.
type Server struct {
	cfg    Config
	hub    Hub
	log    *slog.Logger
	routes []route

	ids     identities
	locks   locks
	runs    runs
	notes   notes
	asks    asks
	pools   pools
	sockets *wsconn.Server

	slowReaders logsample.Limiter
	settled     seen          // sessions
	remote      seen          // agents with a remote producer
	streams     chan struct{} // one slot for each stream
	// condensing has one slot for each branch that is being condensed.
	condensing chan struct{}

	ctx      context.Context // of runs; ends when the server closes
	end      context.CancelFunc
	draining context.Context // of streams; ends when the server drains
	drain    context.CancelFunc
	recovery recovery
	began    time.Time // when it was made
	// background are the runs and the goroutines that watch them.
	background sync.WaitGroup
	counts     counts
}

var _ dialect.Dialect = (*Server)(nil)

// dialectName is the dialect's name in settings, metrics and the hub.
const dialectName = "hpd"

// New returns a server. Close it to end its runs and streams.
func New(cfg Config) (*Server, error) {
	if cfg.Hub == nil {
		return nil, errors.New("hpd: a hub is needed")
	}
	cfg = cfg.withDefaults()
	s := &Server{cfg: cfg, hub: cfg.Hub, log: cfg.Log, ids: identities{hub: cfg.Hub}, streams: make(chan struct{}, cfg.Limits.Streams)}
	s.recovery.seen, s.condensing = make(chan struct{}), make(chan struct{}, condensing)
	s.notes = newNotes(cfg.Limits.Recent)
	s.settled.most, s.remote.most = cfg.Limits.Remembered, cfg.Limits.Remembered
	s.began = s.now()
	s.ctx, s.end = context.WithCancel(context.Background())
	s.draining, s.drain = context.WithCancel(s.ctx)
	s.sockets = wsconn.New(wsconn.Config{Keys: "hpd.limits", NotText: wire.CloseInvalid, Log: cfg.Log, Now: cfg.Now, Limits: cfg.Limits.Socket})
	s.routes = s.table()
	cfg.Hub.Listen(memberListener{server: s})
	return s, nil
}

// Name returns the name of the dialect's section in the configuration.
func (s *Server) Name() string { return dialectName }

// Mount claims all paths below the prefix.
func (s *Server) Mount() dialect.Mount {
	return dialect.Mount{Routes: []dialect.Route{{Pattern: s.cfg.Prefix + "/", Handler: s, Token: s.token, Body: s.bodyOf, Exact: true, Refuse: s.refused}}}
}

// bodyOf returns the limits of a request's body. Uploads have their own.
func (s *Server) bodyOf(r *http.Request) dialect.Body {
	p, ok := parsePath(strings.TrimPrefix(r.URL.EscapedPath(), s.cfg.Prefix))
	if ok && r.Method == http.MethodPost && strings.HasSuffix(p.route, "/content") {
		return dialect.Body{Bytes: s.cfg.Limits.Content + formBytes, Time: s.cfg.Limits.Upload}
	}
	return dialect.Body{}
}

// formBytes is the maximum size of a form without its file.
const formBytes = 64 << 10

// token removes a token from a URL and returns it. Clients whose WebSockets send no
// headers put it into the path, as /hpd/~TOKEN/….
func (s *Server) token(u *url.URL) string {
	if rest, ok := strings.CutPrefix(u.Path, s.cfg.Prefix+"/~"); ok {
		token, _, ok := strings.Cut(rest, "/")
		if ok && token != "" && u.RawPath == "" || strings.HasPrefix(u.RawPath, s.cfg.Prefix+"/~"+token+"/") {
			u.Path = s.cfg.Prefix + strings.TrimPrefix(u.Path, s.cfg.Prefix+"/~"+token)
			if u.RawPath != "" {
				u.RawPath = s.cfg.Prefix + strings.TrimPrefix(u.RawPath, s.cfg.Prefix+"/~"+token)
			}
			return token
		}
	}
	return dialect.QueryToken(u)
}

// Drain ends the streams, and then the runs of this process.
func (s *Server) Drain(ctx context.Context) error {
	s.drain()
	closed := s.sockets.Close(ctx)
	s.end()
	s.pools.stop()
	done := make(chan struct{})
	go func() {
		s.background.Wait()
		close(done)
	}()
	select {
	case <-done:
		return closed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close does the same as Drain, without a time limit.
func (s *Server) Close() error { return s.Drain(context.Background()) }

// Ready returns an error until the runs that a restart left are settled, and while
// the server drains.
func (s *Server) Ready(context.Context) error {
	if s.draining.Err() != nil {
		return errors.New("HPD streams are being closed")
	}
	return s.recovery.unfinished()
}

// Banner returns the address to which clients connect.
func (s *Server) Banner(base string) dialect.Banner {
	return dialect.Banner{Label: "hpd", URL: base + s.cfg.Prefix}
}

// seen is a set of names that forgets all of them when there are too many. What is
// done once for each name is then repeated.
type seen struct {
	most  int
	mu    sync.Mutex
	names map[string]bool
}

func (x *seen) has(name string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.names[name]
}

func (x *seen) remove(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.names, name)
}

func (x *seen) add(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.names == nil || len(x.names) >= x.most {
		x.names = map[string]bool{}
	}
	x.names[name] = true
}

var _ http.Handler = (*Server)(nil)
