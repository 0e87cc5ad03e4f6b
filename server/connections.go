package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/logsample"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
)

// operatorReserve is how many connections this machine's operator can have
// beyond what others have taken.
const operatorReserve = 16

// listener bounds how many connections are open, in all and for each holder, and can
// end them all, also those that a dialect took over from net/http. A holder is a
// peer's address. Behind a proxy all requests come from one address, so there the
// holder is the key; requests without a key share one holder.
type listener struct {
	net.Listener
	max, share int
	proxied    bool
	metrics    *metrics
	log        *slog.Logger
	warnings   logsample.Limiter

	mu      sync.Mutex
	open    map[*conn]struct{}
	by      map[string]int
	reserve []*conn // of the operator, or of peers that may yet prove to be; oldest first
}

// conn gives its place back when it is closed. It embeds the concrete type,
// so that vectored writes and the raw descriptor stay within reach.
type conn struct {
	*net.TCPConn
	owner *listener
	once  sync.Once
	taken atomic.Bool // by a dialect, from net/http

	// Guarded by the owner's lock.
	holder   string
	reserved bool // has a place in the reserve
	proved   bool // and is the operator's
}

func newListener(bound net.Listener, cfg config.Config, m *metrics, log *slog.Logger) *listener {
	l := &listener{
		Listener: bound, max: connections(cfg.HTTP.MaxConnections), share: cfg.Limits.ConnectionsPeer, proxied: cfg.HTTP.BehindProxy, metrics: m, log: log,
		open: map[*conn]struct{}{}, by: map[string]int{},
	}
	if l.share == 0 {
		l.share = max(l.max/4, 1)
	}
	return l
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
		ok, evicted := l.admit(c)
		if evicted != nil {
			l.refused(evicted, "it gave its place of the reserve to a newer one")
			_ = evicted.reset()
		}
		if ok {
			l.log.Debug("connection opened", "peer", c.RemoteAddr().String())
			return c, nil
		}
		l.refused(c, "the limit of connections is reached (http.max_connections), or that of this peer (limits.connections_peer)")
		_ = c.reset()
	}
}

// refused counts and logs a connection that is not served.
func (l *listener) refused(c *conn, why string) {
	l.metrics.refused.WithLabelValues("connections").Inc()
	l.warnings.Warn(l.log, time.Now(), "connection refused", "peer", c.RemoteAddr().String(), "error", why)
}

// reset closes without lingering, because a refused connection must not keep a file
// descriptor.
func (c *conn) reset() error {
	_ = c.SetLinger(0)
	return c.Close()
}

// admit finds a place for a connection. A connection that may be the
// operator's, from this machine, gets a place in the reserve; if the reserve
// is full, the oldest connection that has not proved to be the operator's is
// evicted.
func (l *listener) admit(c *conn) (ok bool, evicted *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	address, local := peer(c)
	if !l.proxied {
		c.holder = address
	}
	free := len(l.open)-len(l.reserve) < l.max && (l.proxied || l.by[c.holder] < l.share)
	switch {
	case free:
	case l.proxied || !local:
		return false, nil
	default:
		if evicted, ok = l.makeReserve(); !ok {
			return false, nil
		}
		c.reserved, c.holder = true, ""
		l.reserve = append(l.reserve, c)
	}
	if c.holder != "" {
		l.by[c.holder]++
	}
	l.open[c] = struct{}{}
	l.metrics.connections.Set(float64(len(l.open)))
	return true, evicted
}

// makeReserve finds a place in the reserve, by evicting the oldest connection
// that has not proved to be the operator's.
func (l *listener) makeReserve() (evicted *conn, ok bool) {
	if len(l.reserve) < operatorReserve {
		return nil, true
	}
	for i, c := range l.reserve {
		if !c.proved {
			l.reserve = append(l.reserve[:i:i], l.reserve[i+1:]...)
			c.reserved = false
			return c, true
		}
	}
	return nil, false
}

// peer returns the address that a connection counts for, and whether it is this
// machine. An IPv6 network counts as one address: its holder can choose the
// rest.
func peer(c net.Conn) (address string, local bool) {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return "?", false
	}
	addr := at.Addr().Unmap().WithZone("")
	if addr.IsLoopback() {
		return "loopback", true
	}
	if addr.Is6() {
		if network, err := addr.Prefix(64); err == nil {
			return network.String(), false
		}
	}
	return addr.String(), false
}

// Close closes the connection and frees its place, once.
func (c *conn) Close() error {
	c.once.Do(func() {
		if c.owner.forget(c) {
			c.owner.log.Debug("connection closed", "peer", c.RemoteAddr().String())
		}
	})
	return c.TCPConn.Close()
}

// forget frees the place of a connection, and reports whether it had one.
func (l *listener) forget(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.open[c]; !ok {
		return false
	}
	delete(l.open, c)
	l.leave(c)
	for i, other := range l.reserve {
		if other == c {
			l.reserve = append(l.reserve[:i:i], l.reserve[i+1:]...)
			break
		}
	}
	l.metrics.connections.Set(float64(len(l.open)))
	return true
}

func (l *listener) leave(c *conn) {
	if c.holder == "" {
		return
	}
	if l.by[c.holder]--; l.by[c.holder] <= 0 {
		delete(l.by, c.holder)
	}
}

// hold counts a connection for a key from now on, or, if the key is empty, for
// all without one. If peers are counted by address, it does nothing.
func (l *listener) hold(c *conn, key string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	holder := "anonymous"
	if key != "" {
		holder = "key " + key
	}
	if !l.proxied || c.holder == holder {
		return nil
	}
	if l.by[holder] >= l.share {
		return fault.New(fault.Unavailable, "%d connections are open for %s, which is its share (limits.connections_peer); close some", l.by[holder], holderName(key))
	}
	l.leave(c)
	l.by[holder]++
	c.holder = holder
	return nil
}

func holderName(key string) string {
	if key == "" {
		return "clients without a key"
	}
	return "this key"
}

// prove lets the operator of this machine keep a place of the reserve.
func (l *listener) prove(c *conn, who access.Principal) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !c.reserved:
		return nil
	case who.Loopback && who.Has(access.Operator):
		c.proved = true
		return nil
	}
	return fault.New(fault.Unavailable, "the limit of connections is reached (http.max_connections, limits.connections_peer); try again")
}

// cut closes what is still open and returns how many that were.
func (l *listener) cut() int {
	l.mu.Lock()
	left := slices.Collect(maps.Keys(l.open))
	l.mu.Unlock()
	for _, c := range left {
		_ = c.Close()
	}
	return len(left)
}

// asking reports whether connections are open on which requests may arrive.
func (l *listener) asking() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if !c.taken.Load() {
			return true
		}
	}
	return false
}

type connKey struct{}

// connBelow returns the listener's connection below one that net/http serves.
func connBelow(c net.Conn) (*conn, bool) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	found, ok := c.(*conn)
	return found, ok
}

// noteState notes that net/http does not serve a connection any more.
func noteState(c net.Conn, state http.ConnState) {
	if found, ok := connBelow(c); ok && state == http.StateHijacked {
		found.taken.Store(true)
	}
}

// withConn adds the connection to the context of its requests.
func withConn(ctx context.Context, c net.Conn) context.Context {
	own, ok := connBelow(c)
	if !ok {
		return ctx
	}
	ctx = access.WithSeat(ctx, func(key string) error { return own.owner.hold(own, key) })
	return context.WithValue(ctx, connKey{}, own)
}

// seated counts the connection for its caller, and refuses a caller that has too
// many.
func seated(refuse refuser, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*conn); ok {
			who := access.From(r.Context())
			err := c.owner.prove(c, who)
			if err == nil {
				err = c.owner.hold(c, who.Key)
			}
			if err != nil {
				c.owner.refused(c, err.Error())
				w.Header().Set("Connection", "close")
				refuse(w, r, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
