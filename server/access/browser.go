package access

import (
	"net/http"
	"slices"
	"strings"
)

// pages hold no data of the hub, so a link of another site may open them.
var pages = []string{"/", "/console/"}

// fromOwnSite reports whether a request does not come from a page of another
// site. A browser says so in Sec-Fetch-Site, also if it sends no Origin; other
// clients do not send it. Pages of listed origins may ask, and a link of any
// site may open a page without data.
func (g *Guard) fromOwnSite(r *http.Request) bool {
	other := func(site string) bool { return site != "same-origin" && site != "none" }
	if !slices.ContainsFunc(r.Header.Values("Sec-Fetch-Site"), other) {
		return true
	}
	return g.listed(r) || opensPage(r)
}

// listed reports whether a request names its origin, and that one is listed.
func (g *Guard) listed(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	return len(origins) == 1 && g.lists(origins[0])
}

// opensPage reports whether a browser opens a page without data in a tab of its
// own: frames, scripts and images are not navigations of that kind.
func opensPage(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document" && slices.Contains(pages, r.URL.Path)
}

// proxied are headers of proxies besides all that begin with X-Forwarded.
var proxied = []string{
	"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Forwarded-For",
	"True-Client-Ip", "Cf-Connecting-Ip", "Fastly-Client-Ip",
}

// forwarded reports whether a header says that a proxy forwarded the request.
// The header's presence decides, not its value: an empty one may precede a
// filled one.
func forwarded(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded") || slices.Contains(proxied, name) {
			return true
		}
	}
	return false
}

// harden tells browsers not to guess the type of an answer, and not to give it
// to pages of other sites.
func harden(header http.Header) {
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
}
