package server

import (
	"cmp"
	"context"
	"net/http"
	"strings"
)

// routeName carries the matched pattern back to the metrics: the guard passes
// an inner copy of the request to the mux.
type routeName struct{ pattern string }

func (n *routeName) String() string {
	return cmp.Or(n.pattern, "refused")
}

type routeKey struct{}

func withRoute(ctx context.Context, name *routeName) context.Context {
	return context.WithValue(ctx, routeKey{}, name)
}

// named records which pattern of mux a request matched. Patterns are few;
// paths are chosen by clients and would make the label unbounded.
func named(m *mounted, mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if route, ok := m.exact(r); ok {
			r.Pattern = route.Pattern
			route.Handler.ServeHTTP(w, r)
		} else {
			mux.ServeHTTP(w, r)
		}
		if name, ok := r.Context().Value(routeKey{}).(*routeName); ok {
			name.pattern = r.Pattern[strings.LastIndexByte(r.Pattern, ' ')+1:]
		}
	})
}
