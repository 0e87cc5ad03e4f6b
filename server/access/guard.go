package access

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/server/problem"
)

// Guard wraps every handler. It refuses requests that a web page of another site
// could have made, and determines the principal of the others.
type Guard struct {
	Keys        *Keys
	Sessions    *Sessions              // nil: there are none
	Listen      string                 // host:port as configured
	Hosts       []string               // names besides loopback and Listen
	Named       func(host string) bool // whether Hosts' default has a name; nil: it is empty
	Origins     []string               // web origins besides the hub's own
	BehindProxy bool
	// Token takes a token out of u, a copy of the request's URL, on paths that
	// may have one there; empty is none. May be nil.
	Token func(r *http.Request, u *url.URL) string
	// Refused is called with each refusal: host, origin, site or token, and
	// why. May be nil.
	Refused func(r *http.Request, reason string, err error)
	// Answer answers a refused request; nil answers with problem+json.
	Answer func(http.ResponseWriter, *http.Request, error)
}

// Wrap returns a handler that passes permitted requests to next, with their
// principal in the context.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		harden(w.Header())
		r, token := g.takeToken(r)
		if !g.knowsHost(r) {
			g.refuse(w, r, "host", fault.New(fault.AccessDenied,
				"the Host %q is not one of this hub's; add it to http.hosts if it should be", r.Host))
			return
		}
		for _, origin := range r.Header.Values("Origin") {
			if !g.knowsOrigin(origin, r) {
				g.refuse(w, r, "origin", fault.New(fault.AccessDenied,
					"pages of the origin %q may not connect; add it to http.origins if they should", origin))
				return
			}
		}
		if !g.fromOwnSite(r) {
			g.refuse(w, r, "site", fault.New(fault.AccessDenied,
				"a page of another site asks for %s (Sec-Fetch-Site %s); add its origin to http.origins if it should, and let it ask with CORS",
				r.URL.Path, strings.Join(r.Header.Values("Sec-Fetch-Site"), ", ")))
			return
		}
		if g.cors(w, r, r.Header.Get("Origin")) {
			return
		}
		who, err := g.identify(r, token)
		if err != nil {
			g.Keys.Failed(r.RemoteAddr, "http", "")
			g.refuse(w, r, "token", err)
			return
		}
		ctx, done := g.Keys.serve(With(r.Context(), who), who)
		defer done()
		if !g.Keys.Stands(who) { // revoked before it was counted
			g.refuse(w, r, "token", ErrRevoked)
			return
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, reason string, err error) {
	if g.Refused != nil {
		g.Refused(r, reason, err)
	}
	if g.Answer != nil {
		g.Answer(w, r, err)
		return
	}
	problem.Write(w, err)
}

// takeToken returns the token of the URL, and a request without it: later
// handlers may log the URL or send it back.
func (g *Guard) takeToken(r *http.Request) (without *http.Request, token string) {
	if g.Token == nil {
		return r, ""
	}
	u := *r.URL
	token = g.Token(r, &u)
	if u == *r.URL {
		return r, token
	}
	without = r.WithContext(r.Context())
	without.URL, without.RequestURI = &u, u.RequestURI()
	return without, token
}

// identify reads the token of the Authorization header, or else that of the
// URL. Without one a session counts, if both its halves are present. Without
// that, loopback is operator until the first key exists, and anonymous
// afterwards.
func (g *Guard) identify(r *http.Request, inURL string) (Principal, error) {
	who := Principal{Loopback: g.loopback(r), Secure: g.secure(r), Address: g.address(r)}
	header := r.Header.Get("Authorization")
	if given := len(r.Header.Values("Authorization")); given > 1 {
		return who, fault.New(fault.AuthFailed, "Authorization is given %d times; give it once", given)
	}
	if header == "" && inURL == "" {
		if session, key, ok := g.session(r); ok {
			who.Role, who.Agent, who.Key, who.Session = key.Role, key.Agent, key.ID, session.ID
			return who, nil
		}
		if who.Loopback && !g.Keys.Claimed() {
			who.Role = Operator
		}
		return who, nil
	}
	if header == "" {
		header = "Bearer " + inURL
	}
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return who, fault.New(fault.AuthFailed, "the Authorization scheme %q is not known here; it is Bearer", scheme)
	}
	key, ok := g.Keys.Resolve(strings.TrimSpace(token))
	if !ok {
		return who, fault.New(fault.AuthFailed, "this token belongs to no key; it may have been revoked")
	}
	who.Role, who.Agent, who.Key = key.Role, key.Agent, key.ID
	return who, nil
}

// loopback reports whether the peer is on this machine and acts for itself: a
// proxy, by its headers, acts for others.
func (g *Guard) loopback(r *http.Request) bool {
	if g.BehindProxy || forwarded(r) {
		return false
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}

// address returns the address that a request comes from. Behind a proxy it is
// the last one in the header, which the proxy has added: the client chooses
// those before it.
func (g *Guard) address(r *http.Request) string {
	named := r.Header.Values("X-Forwarded-For")
	if !g.BehindProxy || len(named) == 0 {
		return r.RemoteAddr
	}
	last := named[len(named)-1]
	return net.JoinHostPort(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:]), "0")
}

// knowsHost guards against rebinding: a page whose name was made to point to
// this hub sends that name as Host.
func (g *Guard) knowsHost(r *http.Request) bool {
	if r.Host == "" {
		return false
	}
	name := hostname(r.Host)
	if IsLoopbackName(name) || strings.EqualFold(name, hostname(g.Listen)) {
		return true
	}
	for _, known := range g.Hosts {
		if strings.EqualFold(known, r.Host) || strings.EqualFold(known, name) {
			return true
		}
	}
	if len(g.Hosts) == 0 && g.Named != nil && g.Named(name) {
		return true
	}
	return isLocalAddress(r, name)
}

// isLocalAddress accepts the very address that was connected to, which is the
// listen address of a hub that listens on all: no name can be rebound to it.
func isLocalAddress(r *http.Request, host string) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	own, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return false
	}
	asked, err := netip.ParseAddr(host)
	return err == nil && asked.Unmap() == own.Addr().Unmap().WithZone("")
}

// knowsOrigin accepts the listed origins and pages that the hub itself served.
func (g *Guard) knowsOrigin(origin string, r *http.Request) bool {
	if g.lists(origin) {
		return true
	}
	page, err := url.Parse(origin)
	if err != nil || !strings.EqualFold(page.Host, r.Host) {
		return false
	}
	switch {
	case g.BehindProxy: // the proxy may use either
		return page.Scheme == "https" || page.Scheme == "http"
	case r.TLS != nil:
		return page.Scheme == "https"
	default:
		return page.Scheme == "http"
	}
}

func (g *Guard) lists(origin string) bool {
	return slices.ContainsFunc(g.Origins, func(known string) bool {
		return strings.EqualFold(strings.TrimSuffix(known, "/"), origin)
	})
}

// hostname drops the port and the brackets of an IPv6 address.
func hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// IsLoopbackName reports whether a host name always means this machine.
func IsLoopbackName(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
