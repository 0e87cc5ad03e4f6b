package standby

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Limits bound a server that stands by.
type Limits struct {
	Connections   int
	Header        int
	HeaderTimeout time.Duration
	IdleTimeout   time.Duration
	BodyTimeout   time.Duration
}

// Standing is an HTTP server that answers for a node that stands by.
type Standing struct {
	http    *http.Server
	bounded *bounded
	leaving atomic.Bool
	ended   chan struct{}
	err     error // of accepting; read after ended
}

// Stand starts a server on a listener. The caller must call Wait.
func (n Node) Stand(listener net.Listener, secure *tls.Config, limits Limits, log *slog.Logger) *Standing {
	s := &Standing{
		bounded: &bounded{Listener: listener, open: make(chan struct{}, limits.Connections)},
		ended:   make(chan struct{}),
	}
	s.http = &http.Server{
		Handler: s.lastAnswers(n.Handler()), TLSConfig: secure, MaxHeaderBytes: limits.Header,
		ReadHeaderTimeout: limits.HeaderTimeout, IdleTimeout: limits.IdleTimeout,
		ReadTimeout: limits.HeaderTimeout + limits.BodyTimeout, WriteTimeout: limits.HeaderTimeout + limits.BodyTimeout,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() {
		defer close(s.ended)
		if secure != nil {
			s.err = s.http.ServeTLS(s.bounded, "", "")
		} else {
			s.err = s.http.Serve(s.bounded)
		}
	}()
	return s
}

// Ended returns a channel that is closed when the server accepts no more connections.
func (s *Standing) Ended() <-chan struct{} { return s.ended }

// Leave stops accepting and returns when the listener is free for the next
// server. It cuts off no request: one that is under way on an open connection
// is answered, and the answer ends the connection.
//
// http.Server.Shutdown does not promise that: it closes a connection that it
// believes to be idle though a request has just arrived, and it waits for one
// that has sent nothing yet.
func (s *Standing) Leave() error {
	s.leaving.Store(true)
	err := s.bounded.Close()
	<-s.ended
	if !errors.Is(s.err, net.ErrClosed) && !errors.Is(s.err, http.ErrServerClosed) {
		err = errors.Join(s.err, err)
	}
	return err
}

// Wait returns when no connection is left after Leave. Connections that send nothing
// end by the time limits of the server. When ctx ends, all connections are closed.
func (s *Standing) Wait(ctx context.Context) error {
	err := s.Leave()
	for range cap(s.bounded.open) {
		select {
		case s.bounded.open <- struct{}{}:
		case <-ctx.Done():
			return errors.Join(err, s.shutdown(ctx))
		}
	}
	return err
}

func (s *Standing) shutdown(ctx context.Context) error {
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	err := s.http.Shutdown(patience)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	return err
}

// lastAnswers makes the next answer end its connection once the node is leaving.
func (s *Standing) lastAnswers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.leaving.Load() && !upgrade(r) {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// bounded is a listener that closes new connections while the maximum number is open.
type bounded struct {
	net.Listener
	open chan struct{} // a place for each connection
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case b.open <- struct{}{}:
			return &counted{Conn: conn, leave: func() { <-b.open }}, nil
		default:
			_ = conn.Close()
		}
	}
}

type counted struct {
	net.Conn
	once  sync.Once
	leave func()
}

func (c *counted) Close() error {
	c.once.Do(c.leave)
	return c.Conn.Close()
}
