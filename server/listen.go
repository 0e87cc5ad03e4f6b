package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
)

// CanListen finds out what would keep New from listening as it is told to, before
// anything is made for it: the address, what exposes an open hub, given how many
// keys there are, and the certificate. Whether the port is free only New knows.
func CanListen(cfg config.Config, keys int) error {
	if _, err := address(cfg, keys); err != nil {
		return err
	}
	if cfg.TLS.Cert == "" {
		return nil
	}
	_, err := loadCertificate(cfg.TLS.Cert, cfg.TLS.Key, slog.New(slog.DiscardHandler))
	return err
}

// address is where to listen, unless that would expose an open hub.
func address(cfg config.Config, keys int) (*net.TCPAddr, error) {
	address, err := net.ResolveTCPAddr("tcp", cfg.HTTP.Listen)
	if err != nil {
		return nil, fmt.Errorf("http.listen: %q is no address to listen on (%w); it looks like 127.0.0.1:7440", cfg.HTTP.Listen, err)
	}
	return address, access.Exposure{
		Address:     cfg.HTTP.Listen,
		Data:        cfg.Data.Dir,
		Loopback:    address.IP.IsLoopback(),
		NoneAlways:  cfg.AG2.AllowNone == config.NoneAlways,
		Keys:        keys,
		TLS:         cfg.TLS.Cert != "",
		BehindProxy: cfg.HTTP.BehindProxy,
		Insecure:    cfg.HTTP.Insecure,
	}.Check()
}

// listen binds the configured address.
func listen(ctx context.Context, cfg config.Config, keys int, m *metrics) (*listener, error) {
	address, err := address(cfg, keys)
	if err != nil {
		return nil, err
	}
	bound, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address.String())
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another address with --listen (port 0 takes a free one)", cfg.HTTP.Listen, err)
	}
	return &listener{
		Listener: bound, max: cfg.HTTP.MaxConnections, metrics: m, open: map[*conn]struct{}{},
	}, nil
}

// listener bounds how many connections are open and can end them all, also
// those that a dialect took over from net/http.
type listener struct {
	net.Listener
	max     int
	metrics *metrics

	mu   sync.Mutex
	open map[*conn]struct{}
}

// conn gives its place back when it is closed. It embeds the concrete type,
// so that vectored writes and the raw descriptor stay within reach.
type conn struct {
	*net.TCPConn
	owner *listener
	once  sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := accepted.(*net.TCPConn)
		if !ok {
			return nil, fmt.Errorf("listener gave a %T, not a TCP connection", accepted)
		}
		c := &conn{TCPConn: tcp, owner: l}
		if l.admit(c) {
			return c, nil
		}
		l.metrics.refused.WithLabelValues("connections").Inc()
		// Reset rather than linger: the refused must not cost a descriptor.
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
	}
}

func (l *listener) admit(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.max {
		return false
	}
	l.open[c] = struct{}{}
	l.metrics.connections.Set(float64(len(l.open)))
	return true
}

// Close closes the connection and frees its place, once.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.owner.mu.Lock()
		defer c.owner.mu.Unlock()
		delete(c.owner.open, c)
		c.owner.metrics.connections.Set(float64(len(c.owner.open)))
	})
	return c.TCPConn.Close()
}

// cut closes what is still open and says how many that were.
func (l *listener) cut() int {
	l.mu.Lock()
	left := make([]*conn, 0, len(l.open))
	for c := range l.open {
		left = append(left, c)
	}
	l.mu.Unlock()
	for _, c := range left {
		_ = c.Close()
	}
	return len(left)
}
