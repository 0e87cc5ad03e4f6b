// Package server puts a hub on the network: one HTTP listener that every
// dialect shares, with limits, TLS, access, health and metrics. It knows no
// dialect and no envelope; its caller provides what it serves.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-hub/parley/internal/logsample"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
)

// Deps is what a server serves. Nil handlers answer that nothing is there.
type Deps struct {
	Keys     *access.Keys     // required
	Sessions *access.Sessions // of browsers; nil: there are none
	Log      *slog.Logger     // nil: slog.Default()
	// Metrics is the registry behind /metrics; nil makes one. The server adds
	// its own collectors to it.
	Metrics *prometheus.Registry
	Version string

	// V1 serves /v1/ apart from /v1/keys.
	V1 http.Handler
	// Page takes every request without another route.
	Page http.Handler
	// Dialects are the other protocols. The server starts and drains them; the
	// caller of New closes them.
	Dialects []Dialect

	// Ready are the checks behind /readyz, besides those of the dialects.
	Ready []Check

	// May is called before each request, and before each message of
	// connections that stay open (package gate). It refuses what it returns an
	// error for; nil: nothing is refused. Health and metrics are always
	// served.
	May func(ctx context.Context) error

	// Listener is bound already; nil: New binds http.listen. The server closes it.
	Listener net.Listener
}

// Server is a bound listener and what it serves.
type Server struct {
	cfg      config.Config
	deps     Deps
	log      *slog.Logger
	metrics  *metrics
	warnings logsample.Limiter // of what the guard refuses
	mounted  mounted
	listener *listener
	http     *http.Server
	draining atomic.Bool
	patience atomic.Int64  // how long draining may take, in nanoseconds
	stopping chan struct{} // closed when draining begins
	base     context.Context
	abandon  context.CancelFunc // ends base

	certificate *certificate // nil: TLS is off
}

type stoppingKey struct{}

// Stopping returns a channel that is closed when the server that handles the
// request begins to drain. Streams end then; short requests finish.
func Stopping(ctx context.Context) <-chan struct{} {
	stopping, _ := ctx.Value(stoppingKey{}).(chan struct{})
	return stopping
}

// New checks that it may listen on the configured address, and binds it.
// Nothing is answered before Run.
func New(ctx context.Context, cfg config.Config, deps Deps) (*Server, error) {
	if deps.Keys == nil {
		return nil, errors.New("server: Deps.Keys is missing")
	}
	deps.Log = cmp.Or(deps.Log, slog.Default())
	if deps.Metrics == nil {
		deps.Metrics = prometheus.NewRegistry()
	}
	s := &Server{cfg: cfg, deps: deps, log: deps.Log, stopping: make(chan struct{})}
	s.patience.Store(int64(cfg.Shutdown.Timeout))
	var err error
	if s.mounted, err = mount(deps.Dialects); err != nil {
		return nil, err
	}
	if s.metrics, err = newMetrics(deps.Metrics, deps.Version, deps.Dialects); err != nil {
		return nil, fmt.Errorf("server: metrics: %w", err)
	}
	deps.Keys.CountFailures(func(door string) { s.metrics.failures.WithLabelValues(door).Inc() })
	var tlsConfig *tls.Config
	if tlsConfig, s.certificate, err = secured(cfg, s.log); err != nil {
		return nil, err
	}
	handler, err := s.handler()
	if err != nil {
		return nil, err
	}
	if s.listener, err = listen(ctx, cfg, deps, s.metrics); err != nil {
		return nil, err
	}
	if s.listener.max < cfg.HTTP.MaxConnections {
		s.log.Info("fewer connections than configured, because of the limit of open files", "http.max_connections", cfg.HTTP.MaxConnections,
			"connections", s.listener.max, "remedy", "raise the limit (ulimit -n, LimitNOFILE=)")
	}

	s.base, s.abandon = context.WithCancel(context.WithValue(s.gated(context.WithoutCancel(ctx)), stoppingKey{}, s.stopping))
	s.http = &http.Server{
		Handler:           handler,
		TLSConfig:         tlsConfig,
		ReadHeaderTimeout: cfg.HTTP.HeaderTimeout,
		IdleTimeout:       cfg.HTTP.IdleTimeout,
		MaxHeaderBytes:    int(cfg.HTTP.MaxHeader),
		// net/http logs only about broken peers, not about the hub.
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return s.base },
		ConnContext: withConn,
		ConnState:   noteState,
	}
	return s, nil
}

// Addr returns where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// URL returns the URL at which a client on this machine reaches the server.
func (s *Server) URL() string { return localURL(s.Addr(), s.certificate != nil) }

func localURL(at net.Addr, secure bool) string {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	address, ok := at.(*net.TCPAddr)
	if !ok {
		return scheme + "://" + at.String()
	}
	host := address.IP
	if host.IsUnspecified() { // also for 0.0.0.0, for which Go listens on both families
		host = net.IPv4(127, 0, 0, 1)
	}
	return scheme + "://" + (&net.TCPAddr{IP: host, Port: address.Port, Zone: address.Zone}).String()
}

// Addresses returns where clients beyond this machine reach the server: what
// http.hosts or the certificate names, or else the machine's own addresses if
// it listens on all of them. Behind a proxy they are the proxy's.
func (s *Server) Addresses() []string { return addresses(s.cfg, s.Addr(), s.certificate) }

// Reached returns how clients reach a server that listens on an address: on this machine,
// and from elsewhere the best guess; the same if it listens for this machine only.
func Reached(cfg config.Config, at net.Addr) (here, elsewhere string, err error) {
	var cert *certificate
	if cfg.TLS.Cert != "" {
		if cert, err = loadCertificate(cfg.TLS.Cert, cfg.TLS.Key, slog.New(slog.DiscardHandler)); err != nil {
			return "", "", err
		}
	}
	here = localURL(at, cert != nil)
	if all := addresses(cfg, at, cert); len(all) > 0 {
		return here, all[0], nil
	}
	return here, here, nil
}

func addresses(cfg config.Config, at net.Addr, cert *certificate) []string {
	address, ok := at.(*net.TCPAddr)
	if !ok || address.IP.IsLoopback() {
		return nil
	}
	scheme, port := "http://", strconv.Itoa(address.Port)
	if cert != nil {
		scheme = "https://"
	}
	hosts := cfg.HTTP.Hosts
	switch {
	case cfg.HTTP.BehindProxy:
		scheme, port = "https://", ""
	case len(hosts) == 0 && cert != nil:
		hosts = cert.hosts()
	case len(hosts) == 0 && address.IP.IsUnspecified():
		hosts = ownAddresses()
	}
	list := make([]string, len(hosts))
	for i, host := range hosts {
		if _, _, err := net.SplitHostPort(host); err != nil && port != "" {
			host = net.JoinHostPort(host, port)
		}
		list[i] = scheme + host
	}
	return list
}

// maxOwnAddresses bounds how many addresses of the machine are shown.
const maxOwnAddresses = 4

// ownAddresses returns the machine's addresses, without loopback and link-local
// ones.
func ownAddresses() []string {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil // without them nothing is shown
	}
	var list []string
	for _, a := range all {
		network, ok := a.(*net.IPNet)
		if ok && network.IP.IsGlobalUnicast() && len(list) < maxOwnAddresses {
			list = append(list, network.IP.String())
		}
	}
	return list
}

// Run starts the dialects, serves until ctx ends, and then drains: /readyz
// reports that the server is not ready, upgrades are refused, dialects end their
// connections, the listener closes, and requests in flight finish. Connections
// that are left after shutdown.timeout are closed. Run returns when none is left.
// It is called once.
func (s *Server) Run(ctx context.Context) error {
	defer s.abandon()
	if err := s.startDialects(s.gated(ctx)); err != nil {
		return errors.Join(fmt.Errorf("server: %w", err), s.listener.Close())
	}
	served := make(chan error, 1)
	go func() {
		if s.certificate != nil {
			served <- s.http.ServeTLS(s.listener, "", "")
		} else {
			served <- s.http.Serve(s.listener)
		}
	}()
	select {
	case err := <-served:
		s.listener.cut()
		return fmt.Errorf("server: %w", err)
	case <-ctx.Done():
	}

	start := time.Now()
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(s.patience.Load()))
	defer cancel()
	s.draining.Store(true)
	close(s.stopping)
	s.drainDialects(limit)
	_ = s.listener.Close() // Serve returns the error of Accept too
	<-served
	s.settle(limit)
	err := s.http.Shutdown(limit)
	s.abandon()
	if left := s.listener.cut(); left > 0 {
		s.log.Warn("cut off connections that did not end in time", "connections", left, "waited", time.Since(start))
	}
	if err != nil {
		err = s.http.Close()
	}
	return err
}

// settle answers requests on connections that are already open, and closes
// them. http.Server.Shutdown alone would drop a client that is about to ask:
// it answers no request that it reads from then on.
func (s *Server) settle(ctx context.Context) {
	for wait := time.Millisecond; s.listener.asking(); wait = min(2*wait, 100*time.Millisecond) {
		s.http.SetKeepAlivesEnabled(false) // and closes what is idle by now, or has been silent for 5 s
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// Hurry shortens shutdown.timeout for a drain that has not begun, because
// waiting cannot save anything.
func (s *Server) Hurry(limit time.Duration) {
	s.patience.Store(min(s.patience.Load(), int64(limit)))
}

// Close closes a server that never ran.
func (s *Server) Close() error {
	s.abandon()
	return s.listener.Close()
}
