package access_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/server/access"
)

// Pages of listed origins, and no others, may read answers; before a request
// that not every page may make, a browser asks.
func TestPagesOfListedOrigins(t *testing.T) {
	t.Parallel()
	const desk = "https://desk.example"
	preflight := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type,x-tenant"}
	many := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", strings.Repeat("x-tenant,", 200)}
	answers := map[string]string{
		"Access-Control-Allow-Origin": desk, "Access-Control-Allow-Credentials": "true", "Access-Control-Expose-Headers": "Allow, Location, Retry-After, WWW-Authenticate", "Vary": "Origin",
	}
	allowed := func(headers string) map[string]string {
		return map[string]string{
			"Access-Control-Allow-Origin": desk, "Access-Control-Allow-Credentials": "true",
			"Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE", "Access-Control-Max-Age": "600",
			"Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, Last-Event-ID" + headers,
			"Vary":                         "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
		}
	}
	for name, tc := range map[string]struct {
		origins []string
		method  string
		origin  string
		header  []string
		status  int
		want    map[string]string // of what CORS adds
	}{
		"answer":                   {[]string{desk}, http.MethodGet, desk, nil, 200, answers},
		"preflight":                {[]string{desk + "/"}, http.MethodOptions, desk, preflight, 204, allowed(", authorization,content-type,x-tenant")},
		"a preflight of nothing":   {[]string{desk}, http.MethodOptions, desk, preflight[:2], 204, allowed("")},
		"too many headers":         {[]string{desk}, http.MethodOptions, desk, many, 204, allowed("")},
		"a refused token":          {[]string{desk}, http.MethodGet, desk, []string{"Authorization", "Bearer x"}, 401, answers},
		"no preflight":             {[]string{desk}, http.MethodOptions, desk, nil, 200, answers},
		"another origin":           {[]string{desk}, http.MethodGet, "https://evil.example", nil, 403, map[string]string{}},
		"another asks":             {[]string{desk}, http.MethodOptions, "https://evil.example", preflight, 403, map[string]string{}},
		"no page":                  {[]string{desk}, http.MethodGet, "", nil, 200, map[string]string{"Vary": "Origin"}},
		"the hub's own":            {[]string{desk}, http.MethodGet, "http://localhost:7440", nil, 200, map[string]string{"Vary": "Origin"}},
		"the hub's own asks":       {[]string{desk}, http.MethodOptions, "http://localhost:7440", preflight, 200, map[string]string{"Vary": "Origin"}},
		"none listed":              {nil, http.MethodGet, "http://localhost:7440", nil, 200, map[string]string{}},
		"a star lists nobody else": {[]string{"*"}, http.MethodGet, desk, nil, 403, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &access.Guard{Keys: access.NewKeys(), Listen: "127.0.0.1:7440", Origins: tc.origins}
			r := request("127.0.0.1:1", "localhost:7440", tc.header...)
			r.Method = tc.method
			if tc.origin != "" {
				r.Header.Set("Origin", tc.origin)
			}
			_, answer := ask(g, r)
			status := answer.Code
			if status == http.StatusNoContent && tc.status == 200 {
				status = 200 // the answer of the handler behind the guard
			}
			got := map[string]string{}
			for name, values := range answer.Header() {
				if name == "Vary" || strings.HasPrefix(name, "Access-Control-") {
					got[name] = strings.Join(values, ", ")
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || status != tc.status {
				t.Errorf("%d, want %d (-want +got):\n%s", answer.Code, tc.status, diff)
			}
		})
	}
}
