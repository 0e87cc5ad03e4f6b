package access

import (
	"net"
	"net/http"
	"time"
)

// ProofHeader is the header in which a page sends its half of a session.
const ProofHeader = "Parley-Session"

// cookieName returns the name of a session's cookie. Cookies do not distinguish
// ports, so hubs on several ports of one machine need names of their own.
func cookieName(r *http.Request, secure bool) string {
	prefix, port := "", "80"
	if secure {
		prefix, port = "__Host-", "443"
	}
	if _, given, err := net.SplitHostPort(r.Host); err == nil && given != "" {
		port = given
	}
	return prefix + "parley-session-" + port
}

// Cookie returns a session's cookie; without a value it removes the one there is.
func Cookie(r *http.Request, value string, lasts time.Duration) *http.Cookie {
	secure := From(r.Context()).Secure
	c := &http.Cookie{
		Name: cookieName(r, secure), Value: value, Path: "/", MaxAge: int(lasts / time.Second),
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// session returns the session of a request. Both halves are needed: a browser
// sends the cookie to every server of this machine, whatever its port, and a
// page of another port cannot read the proof.
func (g *Guard) session(r *http.Request) (Session, Key, bool) {
	if g.Sessions == nil {
		return Session{}, Key{}, false
	}
	proofs := r.Header.Values(ProofHeader)
	cookie, err := r.Cookie(cookieName(r, g.secure(r)))
	if err != nil || len(proofs) != 1 {
		return Session{}, Key{}, false
	}
	return g.Sessions.find(cookie.Value, proofs[0])
}

// secure reports whether a browser reaches the hub over TLS.
func (g *Guard) secure(r *http.Request) bool { return g.BehindProxy || r.TLS != nil }
