package access_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-hub/parley/server/access"
)

// A page of another site reaches nothing, not even what it could not read; a
// link of another site may open a page without data.
func TestPagesOfOtherSites(t *testing.T) {
	t.Parallel()
	const desk = "https://desk.example"
	navigate := []string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	for name, tc := range map[string]struct {
		method, path, site string
		header             []string
		want               bool
	}{
		"no browser":                        {"GET", "/v1/backup", "", nil, true},
		"typed by a person":                 {"GET", "/v1/agents", "none", navigate, true},
		"own page":                          {"GET", "/v1/agents", "same-origin", nil, true},
		"another port of this machine":      {"GET", "/v1/agents", "same-site", nil, false},
		"an image of another site":          {"GET", "/v1/backup", "cross-site", []string{"Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, false},
		"a link to data":                    {"GET", "/v1/backup", "cross-site", navigate, false},
		"a link to the page":                {"GET", "/", "cross-site", navigate, true},
		"a link to the console":             {"GET", "/console/", "cross-site", navigate, true},
		"a frame of the page":               {"GET", "/", "cross-site", []string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, false},
		"a script of the page":              {"GET", "/", "cross-site", []string{"Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, false},
		"a form to the page":                {"POST", "/", "cross-site", navigate, false},
		"a path that cleans to the page":    {"GET", "//", "cross-site", navigate, false},
		"a listed origin":                   {"GET", "/v1/agents", "cross-site", []string{"Origin", desk}, true},
		"an origin that is not":             {"GET", "/v1/agents", "cross-site", []string{"Origin", "https://evil.example"}, false},
		"a listed and another":              {"GET", "/v1/agents", "cross-site", []string{"Origin", desk, "Origin", "https://evil.example"}, false},
		"own origin, from another site":     {"GET", "/v1/agents", "cross-site", []string{"Origin", "http://localhost:7440"}, false},
		"an empty value before another":     {"GET", "/v1/agents", "same-origin", []string{"Sec-Fetch-Site", "cross-site"}, false},
		"an unknown value is another's too": {"GET", "/v1/agents", "elsewhere", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reason := ""
			g := &access.Guard{Keys: access.NewKeys(), Listen: "127.0.0.1:7440", Origins: []string{desk}, Refused: func(_ *http.Request, r string, _ error) { reason = r }}
			r := request("127.0.0.1:1", "localhost:7440")
			r.Method, r.URL = tc.method, &url.URL{Path: tc.path}
			if tc.site != "" {
				r.Header.Set("Sec-Fetch-Site", tc.site)
			}
			for i := 0; i+1 < len(tc.header); i += 2 {
				r.Header.Add(tc.header[i], tc.header[i+1])
			}
			_, answer := ask(g, r)
			if got := answer.Code == http.StatusNoContent; got != tc.want {
				t.Fatalf("let through %v, want %v: %s", got, tc.want, answer.Body)
			}
			if !tc.want && (answer.Code != 403 || !strings.Contains(answer.Body.String(), "http.origins") || reason == "") {
				t.Errorf("refused with %d %s, counted as %q", answer.Code, answer.Body, reason)
			}
		})
	}
}

// Browsers are told not to guess an answer's type and not to give it to other
// sites, also for refusals.
func TestEveryAnswerIsHardened(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*http.Request{
		"answer":     request("127.0.0.1:1", "localhost:7440"),
		"bad host":   request("127.0.0.1:1", "evil.example"),
		"bad origin": request("127.0.0.1:1", "localhost:7440", "Origin", "https://evil.example"),
		"bad site":   request("127.0.0.1:1", "localhost:7440", "Sec-Fetch-Site", "cross-site"),
		"bad token":  request("127.0.0.1:1", "localhost:7440", "Authorization", "Bearer x"),
	} {
		_, answer := ask(&access.Guard{Keys: access.NewKeys(), Listen: "127.0.0.1:7440"}, r)
		if h := answer.Header(); h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%s: %v", name, h)
		}
	}
}
