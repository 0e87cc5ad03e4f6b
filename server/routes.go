package server

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/problem"
)

// handler lays the paths out. Everything passes the guard first.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/healthz", readOnly(http.HandlerFunc(s.healthz)))
	mux.Handle("/readyz", readOnly(http.HandlerFunc(s.readyz)))
	mux.Handle("/metrics", readOnly(forScrapers(promhttp.HandlerFor(s.deps.Metrics, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4,
	}))))
	mux.Handle("/v1/keys", access.Require(access.Operator, http.HandlerFunc(s.keys)))
	mux.Handle("/v1/keys/{id}", access.Require(access.Operator, http.HandlerFunc(s.key)))
	mux.Handle("/v1/", orNothing(s.deps.V1))
	for pattern, handler := range s.deps.Routes {
		mux.Handle(pattern, handler)
	}
	page := orNothing(s.deps.Page)
	upgrade := orNothing(s.deps.Upgrade)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if isUpgrade(r) {
			upgrade.ServeHTTP(w, r)
			return
		}
		page.ServeHTTP(w, r)
	})

	guard := &access.Guard{
		Keys:        s.deps.Keys,
		Listen:      s.cfg.HTTP.Listen,
		Hosts:       s.cfg.HTTP.Hosts,
		Origins:     s.cfg.HTTP.Origins,
		BehindProxy: s.cfg.HTTP.BehindProxy,
		Refused:     func(reason string) { s.metrics.refused.WithLabelValues(reason).Inc() },
	}
	return s.metrics.observe(guard.Wrap(s.bound(named(mux))))
}

// bound limits the body of a plain request in size and in time. An upgraded
// connection has limits of its own; a draining server takes no new one.
func (s *Server) bound(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isUpgrade(r) && s.draining.Load() {
			problem.Write(w, fault.New(fault.Unavailable, "the hub is shutting down; connect again in a moment"))
			return
		}
		if !isUpgrade(r) {
			r.Body = http.MaxBytesReader(w, r.Body, int64(s.cfg.Limits.Body))
			if r.ContentLength != 0 {
				// A writer without deadlines is a test's; then there is no peer to be slow.
				_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.cfg.HTTP.BodyTimeout))
			}
		}
		next.ServeHTTP(w, r)
	})
}

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

// orNothing answers for a handler that was not given.
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
	http.Error(w, r.Method+" is not possible here; it is "+strings.Join(methods, " or "), http.StatusMethodNotAllowed)
	return false
}

// forScrapers lets this machine's own scraper in without a key.
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
