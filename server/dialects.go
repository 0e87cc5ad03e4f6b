package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"

	"github.com/parley-hub/parley/server/dialect"
	"github.com/parley-hub/parley/server/problem"
)

// Dialect is a protocol that the server speaks beside /v1.
type Dialect = dialect.Dialect

// mounted is the part of a server's listener that its dialects serve.
type mounted struct {
	routes  map[string]dialect.Route // by pattern
	upgrade http.Handler             // nil: none
}

// mount asks each dialect for its routes, and refuses conflicts.
func mount(dialects []Dialect) (mounted, error) {
	m := mounted{routes: map[string]dialect.Route{}}
	names := map[string]bool{}
	for _, d := range dialects {
		if names[d.Name()] {
			return m, fmt.Errorf("server: two dialects are named %q", d.Name())
		}
		names[d.Name()] = true
		own := d.Mount()
		if own.Upgrade != nil {
			if m.upgrade != nil {
				return m, fmt.Errorf("server: dialect %s wants every WebSocket path, and another has them; it needs routes", d.Name())
			}
			m.upgrade = own.Upgrade
		}
		for _, route := range own.Routes {
			if _, taken := m.routes[route.Pattern]; taken || route.Handler == nil {
				return m, fmt.Errorf("server: route %q of dialect %s is another's, or has no handler", route.Pattern, d.Name())
			}
			m.routes[route.Pattern] = route
		}
	}
	return m, nil
}

// route finds the dialect's route that a request belongs to.
func (m *mounted) route(mux *http.ServeMux, r *http.Request) (dialect.Route, bool) {
	if len(m.routes) == 0 {
		return dialect.Route{}, false
	}
	route, ok := m.routes[m.owner(mux, r)]
	return route, ok
}

// exact finds the route that takes a path unchanged.
func (m *mounted) exact(r *http.Request) (dialect.Route, bool) {
	for pattern, route := range m.routes {
		if route.Exact && strings.HasPrefix(r.URL.EscapedPath(), pattern) {
			return route, true
		}
	}
	return dialect.Route{}, false
}

// owner returns the pattern that a request's path belongs to, once it is clean.
func (m *mounted) owner(mux *http.ServeMux, r *http.Request) string {
	if route, ok := m.exact(r); ok {
		return route.Pattern
	}
	cleaned := *r
	cleaned.URL = &url.URL{Path: path.Clean("/" + r.URL.Path)}
	_, pattern := mux.Handler(&cleaned)
	return pattern
}

// refuse answers a refused request.
func (m *mounted) refuse(mux *http.ServeMux, w http.ResponseWriter, r *http.Request, err error) {
	if route, ok := m.route(mux, r); ok && route.Refuse != nil {
		route.Refuse(w, r, err)
		return
	}
	problem.Write(w, err)
}

// body returns the bounds of a request's body.
func (s *Server) body(mux *http.ServeMux, r *http.Request) dialect.Body {
	var b dialect.Body
	if route, ok := s.mounted.route(mux, r); ok && route.Body != nil {
		b = route.Body(r)
	} else if v1, ok := s.deps.V1.(interface {
		BodyOf(r *http.Request) dialect.Body
	}); ok && strings.HasPrefix(r.URL.Path, "/v1/") {
		b = v1.BodyOf(r)
	}
	if b.Bytes == 0 {
		b.Bytes = int64(s.cfg.Limits.Body)
	}
	b.Time = cmp.Or(b.Time, s.cfg.HTTP.BodyTimeout)
	return b
}

// token takes a token out of a URL, if its route allows one there.
func (s *Server) token(mux *http.ServeMux, r *http.Request, u *url.URL) string {
	if route, ok := s.mounted.route(mux, r); ok && route.Token != nil {
		return route.Token(u)
	}
	return ""
}

// startDialects starts each in turn.
func (s *Server) startDialects(ctx context.Context) error {
	for _, d := range s.deps.Dialects {
		if err := d.Start(ctx); err != nil {
			return fmt.Errorf("dialect %s: %w", d.Name(), err)
		}
	}
	return nil
}

// drainDialects drains all at once, because they share one timeout.
func (s *Server) drainDialects(ctx context.Context) {
	var all sync.WaitGroup
	for _, d := range s.deps.Dialects {
		all.Go(func() {
			if err := d.Drain(ctx); err != nil {
				s.log.Warn("dialect did not drain in time", "dialect", d.Name(), "error", err)
			}
		})
	}
	all.Wait()
}
