// Package dialect is the contract between the server and the protocols that it
// speaks beside /v1. A dialect says which part of the listener it serves; the
// server provides TLS, limits, access, metrics and the order of starting and
// stopping. Neither knows more of the other.
package dialect

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Dialect is one protocol. Its maker calls Close, after the server has ended;
// the server calls the rest.
type Dialect interface {
	// Name returns the dialect's section of the configuration, which is its
	// name in /readyz too. No other dialect has it.
	Name() string
	// Mount returns the part of the listener that the dialect serves. It is
	// called once.
	Mount() Mount
	// Start begins the dialect's own work, such as talking to a broker. It is
	// called once, before anything is served. That work continues after ctx
	// ends, until Close.
	Start(ctx context.Context) error
	// Drain ends the dialect's connections cleanly. It returns when they have
	// ended, or with an error when ctx ends. New upgrades are refused by then.
	Drain(ctx context.Context) error
	// Close ends everything, also what was never started. It may be called
	// again.
	Close() error
	// Ready returns nil while the dialect can serve, and otherwise says what is
	// wrong. It returns soon after ctx ends.
	Ready(ctx context.Context) error
	// Banner returns the dialect's line of the start-up screen. base is the
	// server's own URL.
	Banner(base string) Banner
	// A dialect's metrics have no names of channels or agents in their labels.
	prometheus.Collector
}

// Mount is the part of the listener that a dialect serves.
type Mount struct {
	Routes []Route
	// Upgrade takes WebSocket upgrades on every path that no route owns. At most
	// one dialect has it.
	Upgrade http.Handler
}

// Route is a path with a handler of its own. An upgrade to a WebSocket on it
// comes to the handler too.
type Route struct {
	Pattern string // of http.ServeMux, without a host
	Handler http.Handler
	// Body bounds the body of a request, whose caller is not known yet. Nil, and
	// zero fields, mean limits.body and http.body_timeout.
	Body func(*http.Request) Body
	// Token takes a token out of the URL of a request, for clients that cannot
	// send an Authorization header, so that it is never logged. Nil takes none.
	Token func(*url.URL) string
	// Exact passes on every path below the pattern unchanged. Otherwise one
	// with // or .. in it is redirected to its clean form, which is another
	// path.
	Exact bool
	// Refuse answers, in the dialect's own form, a request that the server refuses
	// before the handler sees it. Nil answers with the server's own.
	Refuse func(http.ResponseWriter, *http.Request, error)
}

// Body bounds the body of one request.
type Body struct {
	Bytes int64
	// Time is for the whole body. With a negative one the handler sets read
	// deadlines itself.
	Time time.Duration
}

// Banner is a dialect's line of the start-up screen.
type Banner struct {
	Label    string // of the line, one short word
	URL      string // where clients connect
	Warnings []string
}

// QueryToken is a Route.Token for ?access_token=.
func QueryToken(u *url.URL) string {
	query := u.Query()
	token := query.Get("access_token")
	if query.Has("access_token") {
		query.Del("access_token")
		u.RawQuery = query.Encode()
	}
	return token
}
