package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/gate"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/problem"
)

// handler builds the routes. Everything passes the guard first.
func (s *Server) handler() (_ http.Handler, err error) {
	defer func() {
		// The mux has no other way to refuse a pattern.
		if conflict := recover(); conflict != nil {
			err = fmt.Errorf("server: a dialect's route cannot be served: %v", conflict)
		}
	}()
	mux := http.NewServeMux()
	mux.Handle("/healthz", readOnly(http.HandlerFunc(s.healthz)))
	mux.Handle("/readyz", readOnly(http.HandlerFunc(s.readyz)))
	mux.Handle("/metrics", readOnly(forScrapers(promhttp.HandlerFor(s.deps.Metrics, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4,
	}))))
	mux.Handle("/v1/keys", access.Require(access.Operator, http.HandlerFunc(s.keys)))
	mux.Handle("/v1/keys/{id}", access.Require(access.Operator, http.HandlerFunc(s.key)))
	mux.Handle("/v1/", orNothing(s.deps.V1))
	for pattern, route := range s.mounted.routes {
		mux.Handle(pattern, route.Handler)
	}
	mux.Handle(everythingElse, orNothing(s.deps.Page))

	refuse := func(w http.ResponseWriter, r *http.Request, err error) { s.mounted.refuse(mux, w, r, err) }
	var certified func(host string) bool
	if s.certificate != nil {
		certified = s.certificate.names
	}
	guard := &access.Guard{
		Keys:        s.deps.Keys,
		Sessions:    s.deps.Sessions,
		Listen:      s.cfg.HTTP.Listen,
		Hosts:       s.cfg.HTTP.Hosts,
		Named:       certified,
		Origins:     s.cfg.HTTP.Origins,
		BehindProxy: s.cfg.HTTP.BehindProxy,
		Token:       func(r *http.Request, u *url.URL) string { return s.token(mux, r, u) },
		Answer:      refuse,
		Refused:     s.refused,
	}
	routed := s.upgrades(mux, named(&s.mounted, mux))
	return s.bound(mux, s.metrics.observe(guard.Wrap(seated(refuse, s.accept(refuse, routed))))), nil
}

// refused counts and logs a request that the guard refuses. An invalid key is
// logged by the audit of failed authentications.
func (s *Server) refused(r *http.Request, reason string, err error) {
	s.metrics.refused.WithLabelValues(reason).Inc()
	if reason != "token" {
		s.warnings.Warn(s.log, time.Now(), "request refused", "reason", reason, "peer", r.RemoteAddr, "path", r.URL.Path, "error", err)
	}
}

// everythingElse is the pattern of paths without a route.
const everythingElse = "/"

// upgrades passes WebSockets on paths without a route to their dialect. It
// checks before the mux does, because the mux would redirect a path that is
// not clean, such as // or /a/../b, and WebSocket clients follow no redirects.
func (s *Server) upgrades(mux *http.ServeMux, next http.Handler) http.Handler {
	upgrade := orNothing(s.mounted.upgrade)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isUpgrade(r) && s.mounted.owner(mux, r) == everythingElse {
			upgrade.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// bound limits every request in size and in time, before any other handler: a
// refused request, too, may have a body that never arrives or a client that
// never reads. A handler that takes over the connection sets its own limits.
func (s *Server) bound(mux *http.ServeMux, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			control := http.NewResponseController(w)
			limit := s.body(mux, r)
			r.Body = http.MaxBytesReader(w, r.Body, limit.Bytes)
			if limit.Time > 0 {
				// A writer without deadlines is a test's; then no peer can be
				// slow.
				_ = control.SetReadDeadline(time.Now().Add(limit.Time))
				r.Body = &timedBody{r.Body, control}
			}
		}
		answer := newPace(w, r, s.cfg.Limits.FollowerWrite)
		if isUpgrade(r) {
			next.ServeHTTP(w, r) // a handler that takes over the connection needs the writer that net/http made
			return
		}
		next.ServeHTTP(answer, r)
		answer.begin() // net/http writes what is left
	})
}

// timedBody removes the deadline when everything was read: net/http continues
// to read to notice that the peer disconnects, and would mistake a deadline
// for that.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// refuser answers a refused request.
type refuser = func(http.ResponseWriter, *http.Request, error)

// accept refuses new WebSockets while the server drains, and everything that
// May refuses.
func (s *Server) accept(refuse refuser, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.deps.May != nil && !slices.Contains(alwaysServed, r.URL.Path) {
			if err := s.deps.May(r.Context()); err != nil {
				refuse(w, r, err)
				return
			}
		}
		if isUpgrade(r) && s.draining.Load() {
			refuse(w, r, fault.New(fault.Unavailable, "the hub is shutting down; connect again in a moment"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// gated puts the gate into the context, for handlers that keep connections
// open.
func (s *Server) gated(ctx context.Context) context.Context {
	if s.deps.May == nil {
		return ctx
	}
	return gate.With(ctx, s.deps.May)
}

// alwaysServed are the paths that describe the process itself: an operator
// needs them just when nothing else is answered.
var alwaysServed = []string{"/healthz", "/readyz", "/metrics", "/v1/health"}

// isUpgrade reports whether a request asks to become a WebSocket.
func isUpgrade(r *http.Request) bool {
	return hasToken(r.Header.Values("Connection"), "upgrade") && hasToken(r.Header.Values("Upgrade"), "websocket")
}

func hasToken(values []string, token string) bool {
	return slices.ContainsFunc(values, func(value string) bool {
		for part := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
		return false
	})
}

// orNothing returns h, or a handler that answers not found if h is nil.
func orNothing(h http.Handler) http.Handler {
	if h != nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, fault.New(fault.NotFound, "nothing is served at %s", r.URL.Path))
	})
}

// readOnly refuses methods that would change something.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allow(w, r, http.MethodGet, http.MethodHead) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// allow answers 405 unless the request's method is one of methods.
func allow(w http.ResponseWriter, r *http.Request, methods ...string) bool {
	if slices.Contains(methods, r.Method) {
		return true
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	problem.WriteStatus(w, http.StatusMethodNotAllowed,
		fault.New(fault.Invalid, "%s is not possible at %s; it is %s", r.Method, r.URL.Path, strings.Join(methods, " or ")))
	return false
}

// forScrapers admits this machine's own scraper without a key.
func forScrapers(next http.Handler) http.Handler {
	readers := access.Require(access.Reader, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if access.From(r.Context()).Loopback {
			next.ServeHTTP(w, r)
			return
		}
		readers.ServeHTTP(w, r)
	})
}
