package access

import "net/http"

// What pages of listed origins may send and read besides what every page may. They may
// also send headers of their own and what the browser knows of the hub (credentials):
// HPD's clients are configured with both. Nothing is proved by a cookie alone.
const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsHeaders = "Authorization, Content-Type, Idempotency-Key, Last-Event-ID"
	corsExposed = "Allow, Location, Retry-After, WWW-Authenticate"
	corsMaxAge  = "600" // seconds for which a browser need not ask again
	corsAsked   = 1024  // bytes of the names of headers that a page asks for
)

// cors lets browsers give the answers to pages of the listed origins. It
// answers a preflight request itself and then reports true. A browser sends no
// token with a preflight, so the caller is not identified first. The hub's own
// pages need none of it.
func (g *Guard) cors(w http.ResponseWriter, r *http.Request, origin string) bool {
	if len(g.Origins) == 0 {
		return false
	}
	header := w.Header()
	header.Add("Vary", "Origin")
	if origin == "" || !g.lists(origin) {
		return false
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Allow-Credentials", "true")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		header.Set("Access-Control-Expose-Headers", corsExposed)
		return false
	}
	header.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
	header.Set("Access-Control-Allow-Methods", corsMethods)
	allowed := corsHeaders
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" && len(asked) <= corsAsked {
		allowed += ", " + asked
	}
	header.Set("Access-Control-Allow-Headers", allowed)
	header.Set("Access-Control-Max-Age", corsMaxAge)
	w.WriteHeader(http.StatusNoContent)
	return true
}
