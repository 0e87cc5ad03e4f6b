package access_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/problem"
)

// ask sends one request through a guard and returns the principal that the
// guard determined.
func ask(g *access.Guard, r *http.Request) (access.Principal, *httptest.ResponseRecorder) {
	var who access.Principal
	answer := httptest.NewRecorder()
	g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who = access.From(r.Context())
		w.WriteHeader(http.StatusNoContent)
	})).ServeHTTP(answer, r)
	return who, answer
}

// request makes a request with headers in pairs; a name that begins with + is
// added to those that are there.
func request(from, host string, header ...string) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/v1/x", nil)
	r.RemoteAddr = from
	r.Host = host
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(strings.TrimPrefix(header[i], "+"), header[i+1])
	}
	return r
}

func TestWhoARequestIsFrom(t *testing.T) {
	t.Parallel()
	const near, far = "127.0.0.1:5000", "203.0.113.9:5000"
	fresh := access.NewKeys()
	keys := access.NewKeys()
	operator, op := add(t, keys, access.Operator, "")
	reader, re := add(t, keys, access.Reader, "")
	alice, al := add(t, keys, access.Agent, "alice")

	tests := []struct {
		name   string
		keys   *access.Keys
		proxy  bool
		from   string
		header []string
		want   access.Principal
		status int
	}{
		{"no key yet, loopback", fresh, false, near, nil, access.Principal{Role: access.Operator, Loopback: true}, 204},
		{"no key yet, IPv6 loopback", fresh, false, "[::1]:5000", nil, access.Principal{Role: access.Operator, Loopback: true}, 204},
		{"no key yet, mapped loopback", fresh, false, "[::ffff:127.0.0.1]:5000", nil, access.Principal{Role: access.Operator, Loopback: true}, 204},
		{"no key yet, outside", fresh, false, far, nil, access.Principal{}, 204},
		{"no key yet, loopback, behind a proxy", fresh, true, near, nil, access.Principal{}, 204},
		{"no key yet, an undeclared proxy", fresh, false, near, []string{"X-Forwarded-For", "203.0.113.9"}, access.Principal{}, 204},
		{"no key yet, Forwarded", fresh, false, near, []string{"Forwarded", "for=203.0.113.9"}, access.Principal{}, 204},
		{"no key yet, X-Real-IP", fresh, false, near, []string{"X-Real-IP", "203.0.113.9"}, access.Principal{}, 204},
		{"no key yet, an empty X-Forwarded-For first", fresh, false, near, []string{"X-Forwarded-For", "", "+X-Forwarded-For", "203.0.113.9"}, access.Principal{}, 204},
		{"no key yet, an empty X-Forwarded-For alone", fresh, false, near, []string{"X-Forwarded-For", ""}, access.Principal{}, 204},
		{"no key yet, an empty Forwarded", fresh, false, near, []string{"Forwarded", ""}, access.Principal{}, 204},
		{"no key yet, an empty X-Real-IP", fresh, false, near, []string{"x-real-ip", ""}, access.Principal{}, 204},
		{"no key yet, Via", fresh, false, near, []string{"Via", "1.1 cache"}, access.Principal{}, 204},
		{"no key yet, an empty Via", fresh, false, near, []string{"Via", ""}, access.Principal{}, 204},
		{"no key yet, X-Forwarded-Host", fresh, false, near, []string{"X-Forwarded-Host", "hub.example"}, access.Principal{}, 204},
		{"two tokens", keys, false, near, []string{"Authorization", "", "+Authorization", "Bearer " + operator}, access.Principal{}, 401},
		{"no key yet, odd peer", fresh, false, "@", nil, access.Principal{}, 204},
		{"keys, loopback without token", keys, false, near, nil, access.Principal{Loopback: true}, 204},
		{"operator", keys, false, far, []string{"Authorization", "Bearer " + operator}, access.Principal{Role: access.Operator, Key: op.ID}, 204},
		{"reader, scheme in lower case", keys, false, near, []string{"Authorization", "bearer " + reader}, access.Principal{Role: access.Reader, Key: re.ID, Loopback: true}, 204},
		{"agent behind a proxy", keys, true, near, []string{"Authorization", "Bearer " + alice}, access.Principal{Role: access.Agent, Agent: "alice", Key: al.ID}, 204},
		{"wrong token", keys, false, near, []string{"Authorization", "Bearer x"}, access.Principal{}, 401},
		{"wrong token before the first key", fresh, false, near, []string{"Authorization", "Bearer x"}, access.Principal{}, 401},
		{"other scheme", keys, false, near, []string{"Authorization", "Basic " + operator}, access.Principal{}, 401},
		{"token without scheme", keys, false, near, []string{"Authorization", operator}, access.Principal{}, 401},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := &access.Guard{Keys: tc.keys, Listen: "127.0.0.1:7440", BehindProxy: tc.proxy}
			who, answer := ask(g, request(tc.from, "localhost:7440", tc.header...))
			if answer.Code != tc.status {
				t.Errorf("status %d, want %d: %s", answer.Code, tc.status, answer.Body)
			}
			who.Address, who.Secure = "", false // tested with sessions
			if diff := cmp.Diff(tc.want, who); diff != "" {
				t.Errorf("principal (-want +got):\n%s", diff)
			}
			if tc.status == 401 && answer.Header().Get("WWW-Authenticate") != `Bearer realm="parley"` {
				t.Errorf("WWW-Authenticate %q", answer.Header().Get("WWW-Authenticate"))
			}
		})
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	wildcard := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 7440}
	tests := []struct {
		host  string
		local net.Addr
		want  bool
	}{
		{"localhost:7440", nil, true},
		{"LOCALHOST", nil, true},
		{"127.0.0.1:9999", nil, true},
		{"[::1]:7440", nil, true},
		{"[::1]", nil, true},
		{"hub.internal:7440", nil, true}, // the listen address
		{"desk.example", nil, true},
		{"Desk.Example:81", nil, true},
		{"ported.example:8443", nil, true},
		{"ported.example", nil, false},
		{"ported.example:8444", nil, false},
		{"evil.example", nil, false},
		{"localhost.evil.example", nil, false},
		{"127.0.0.1.evil.example", nil, false},
		{"192.0.2.7:7440", wildcard, true},
		{"192.0.2.8:7440", wildcard, false},
		{"192.0.2.7", nil, false},
		{"", wildcard, false},
	}
	for _, tc := range tests {
		t.Run(tc.host, func(t *testing.T) {
			t.Parallel()
			refused := ""
			g := &access.Guard{
				Keys: access.NewKeys(), Listen: "hub.internal:7440",
				Hosts: []string{"desk.example", "ported.example:8443"}, Refused: func(_ *http.Request, reason string, _ error) { refused += reason },
			}
			r := request("127.0.0.1:1", tc.host)
			if tc.local != nil {
				r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tc.local))
			}
			_, answer := ask(g, r)
			if got := answer.Code == http.StatusNoContent; got != tc.want {
				t.Fatalf("let through %v, want %v: %s", got, tc.want, answer.Body)
			}
			if tc.want {
				return
			}
			var p problem.Problem
			if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
			if p.Status != 403 || p.Code != fault.AccessDenied || !strings.Contains(p.Detail, "http.hosts") || refused != "host" {
				t.Errorf("refused with %+v, counted as %q", p, refused)
			}
		})
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, origin, host string
		tls, proxy         bool
		want               bool
	}{
		{"own", "http://localhost:7440", "localhost:7440", false, false, true},
		{"own, upper case", "http://LOCALHOST:7440", "localhost:7440", false, false, true},
		{"another port", "http://localhost:3000", "localhost:7440", false, false, false},
		{"another scheme", "https://localhost:7440", "localhost:7440", false, false, false},
		{"own over TLS", "https://localhost:7440", "localhost:7440", true, false, true},
		{"plain page on a TLS hub", "http://localhost:7440", "localhost:7440", true, false, false},
		{"TLS ended by a proxy", "https://hub.example", "hub.example", false, true, true},
		{"odd scheme behind a proxy", "ftp://hub.example", "hub.example", false, true, false},
		{"listed", "https://desk.example", "localhost:7440", false, false, true},
		{"listed with a slash", "https://slash.example", "localhost:7440", false, false, true},
		{"listed, but plain", "http://desk.example", "localhost:7440", false, false, false},
		{"opaque", "null", "localhost:7440", false, false, false},
		{"nonsense", "http://%zz", "localhost:7440", false, false, false},
		{"stranger", "https://evil.example", "localhost:7440", false, false, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := &access.Guard{
				Keys: access.NewKeys(), Listen: "127.0.0.1:7440", Hosts: []string{"hub.example"},
				Origins: []string{"https://desk.example", "https://slash.example/"}, BehindProxy: tc.proxy,
			}
			r := request("127.0.0.1:1", tc.host, "Origin", tc.origin)
			if tc.tls {
				r.TLS = &tls.ConnectionState{}
			}
			_, answer := ask(g, r)
			if got := answer.Code == http.StatusNoContent; got != tc.want {
				t.Fatalf("let through %v, want %v: %s", got, tc.want, answer.Body)
			}
			if !tc.want && (answer.Code != 403 || !strings.Contains(answer.Body.String(), "http.origins")) {
				t.Errorf("refused with %d %s", answer.Code, answer.Body)
			}
		})
	}
}

func TestRequire(t *testing.T) {
	t.Parallel()
	roles := []access.Role{access.Anonymous, access.Agent, access.Reader, access.Operator}
	want := map[access.Role][]int{ // by the role that asks, in the order above
		access.Anonymous: {204, 204, 204, 204},
		access.Agent:     {401, 204, 403, 403},
		access.Reader:    {401, 403, 204, 204},
		access.Operator:  {401, 403, 403, 204},
	}
	for need, codes := range want {
		for i, role := range roles {
			answer := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/v1/x", nil)
			r = r.WithContext(access.With(r.Context(), access.Principal{Role: role}))
			access.Require(need, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNoContent)
			})).ServeHTTP(answer, r)
			if answer.Code != codes[i] {
				t.Errorf("%s asks for what needs %s: %d, want %d", role, need, answer.Code, codes[i])
			}
		}
	}
	if access.From(context.Background()) != (access.Principal{}) {
		t.Error("a request that passed no guard is somebody")
	}
}

func TestExposure(t *testing.T) {
	t.Parallel()
	open := []string{"ag2.allow_none is always"}
	good := access.Exposure{Address: "0.0.0.0:7440", Keys: 1, TLS: true}
	tests := []struct {
		name string
		edit func(*access.Exposure)
		want []string // in the refusal; none when it may listen
	}{
		{"configured", func(*access.Exposure) {}, nil},
		{"behind a proxy", func(e *access.Exposure) { e.TLS, e.BehindProxy = false, true }, nil},
		{"loopback", func(e *access.Exposure) { *e = access.Exposure{Loopback: true, Open: open} }, nil},
		{"insecure", func(e *access.Exposure) { *e = access.Exposure{Insecure: true, Open: open} }, nil},
		{"scheme none on", func(e *access.Exposure) { e.Open = open }, []string{"ag2.allow_none is always"}},
		{"no key", func(e *access.Exposure) { e.Keys = 0 }, []string{"parley keys add --role operator"}},
		{"no key in a folder", func(e *access.Exposure) { e.Keys, e.Data = 0, "d7" }, []string{"parley keys add --role operator --data d7"}},
		{"no TLS", func(e *access.Exposure) { e.TLS = false }, []string{"--tls-cert and --tls-key, or --behind-proxy"}},
		{
			"nothing", func(e *access.Exposure) { *e = access.Exposure{Address: "0.0.0.0:7440", Open: open} },
			[]string{"0.0.0.0:7440", "allow_none", "keys add", "--tls-cert", "--insecure", "127.0.0.1"},
		},
	}
	for _, tc := range tests {
		e := good
		tc.edit(&e)
		err := e.Check()
		if (err == nil) != (tc.want == nil) {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q lacks %q", tc.name, err, want)
			}
		}
	}
}
