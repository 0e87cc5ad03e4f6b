package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
	"github.com/parley-hub/parley/server/dialect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hub is a running server and a client for it.
type hub struct {
	*server.Server
	keys   *access.Keys
	client *http.Client
	stop   func()     // begins to drain
	done   chan error // what Run returned
}

func start(t *testing.T, edit func(*config.Config, *server.Deps)) *hub {
	t.Helper()
	keys := access.NewKeys()
	cfg := config.Core.Default()
	cfg.HTTP.Listen = "127.0.0.1:0"
	deps := server.Deps{Keys: keys, Log: slog.New(slog.DiscardHandler), Version: "v1.2.3"}
	if edit != nil {
		edit(&cfg, &deps)
	}
	s, err := server.New(t.Context(), cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	h := &hub{Server: s, keys: keys, stop: stop, done: make(chan error, 1)}
	h.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // a test's own certificate
	go func() { h.done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		h.client.CloseIdleConnections()
		if err := <-h.done; err != nil {
			t.Error(err)
		}
	})
	return h
}

// do sends a request and returns the status and the whole body.
func (h *hub) do(t *testing.T, method, path, body string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := h.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, strings.TrimSpace(string(raw))
}

func (h *hub) want(t *testing.T, method, path, body string, status int, answer string, header ...string) {
	t.Helper()
	got, text := h.do(t, method, path, body, header...)
	if got != status || !strings.Contains(text, answer) {
		t.Errorf("%s %s: %d %s; want %d with %q", method, path, got, text, status, answer)
	}
}

// A WebSocket may be requested on every path without a route, also an unclean
// one: its client follows no redirect.
func TestUpgradeOnEveryPath(t *testing.T) {
	t.Parallel()
	said := func(word string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s %s", word, r.URL.Path) })
	}
	h := start(t, func(_ *config.Config, d *server.Deps) {
		d.V1, d.Page, speak(d).upgrade = said("v1"), said("page"), said("upgrade")
		speak(d).routes = []dialect.Route{{Pattern: "/owned/", Handler: said("owned")}}
	})
	ask := func(target string) string {
		var dialer net.Dialer
		conn, err := dialer.DialContext(t.Context(), "tcp", h.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", target)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		raw, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(fmt.Sprint(answer.StatusCode, " ", answer.Header.Get("Location"), string(raw)))
	}
	for target, want := range map[string]string{
		"/":                  "200 upgrade /",
		"//":                 "200 upgrade //",
		"///":                "200 upgrade ///",
		"/a/../b":            "200 upgrade /a/../b",
		"/..":                "200 upgrade /..",
		"/./":                "200 upgrade /./",
		"/a//b/":             "200 upgrade /a//b/",
		"/%2e%2e/x":          "200 upgrade /../x",
		"/v1/../x":           "200 upgrade /v1/../x",
		"//v1x?token=1":      "200 upgrade //v1x",
		"/v1/events":         "200 v1 /v1/events",
		"/owned/x":           "200 owned /owned/x",
		"/a/../v1/events":    "307 /v1/events",
		"//owned/x":          "307 /owned/x",
		"http://localhost//": "200 upgrade //",
	} {
		got, _, _ := strings.Cut(ask(target), "<")
		if strings.TrimSpace(got) != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	var broken error
	failing := make(chan error, 1)
	h := start(t, func(_ *config.Config, d *server.Deps) {
		d.Ready = []server.Check{{Name: "journal", Run: func(ctx context.Context) error {
			select {
			case broken = <-failing:
			default:
			}
			return broken
		}}}
	})
	h.want(t, "GET", "/healthz", "", 200, `{"status":"ok","version":"v1.2.3"}`)
	h.want(t, "GET", "/readyz", "", 200, `{"checks":[{"name":"serving","ok":true},{"name":"journal","ok":true}],"status":"ready"}`)
	failing <- errors.New("disk on fire")
	h.want(t, "GET", "/readyz", "", 503, `{"checks":[{"name":"serving","ok":true},{"name":"journal","ok":false,"reason":"disk on fire"}],"status":"not ready"}`)
	h.want(t, "GET", "/healthz", "", 200, "ok")
	h.want(t, "POST", "/healthz", "", 405, "it is GET or HEAD")
	// A proxy acts for others, who do not see reasons.
	if _, text := h.do(t, "GET", "/readyz", "", "X-Forwarded-For", "203.0.113.1"); strings.Contains(text, "fire") {
		t.Errorf("a stranger was told %s", text)
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	say := func(word string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s %s as %s", word, r.URL.Path, access.From(r.Context()).Role)
		})
	}
	full := start(t, func(_ *config.Config, d *server.Deps) {
		d.V1, d.Page, speak(d).upgrade = say("v1"), say("page"), say("upgrade")
		speak(d).routes = []dialect.Route{{Pattern: "/sessions/", Handler: say("hpd")}}
	})
	upgrade := []string{"Connection", "keep-alive, Upgrade", "Upgrade", "WebSocket"}
	full.want(t, "GET", "/", "", 200, "page / as operator")
	full.want(t, "GET", "/anything", "", 200, "page /anything as operator")
	full.want(t, "GET", "/v1/channels", "", 200, "v1 /v1/channels as operator")
	full.want(t, "GET", "/sessions/1", "", 200, "hpd /sessions/1 as operator")
	full.want(t, "GET", "/", "", 200, "upgrade / as operator", upgrade...)
	full.want(t, "GET", "/any/path", "", 200, "upgrade /any/path as operator", upgrade...)
	full.want(t, "GET", "/sessions/1", "", 200, "hpd /sessions/1", upgrade...)
	full.want(t, "GET", "/", "", 200, "page /", "Connection", "upgrade", "Upgrade", "h2c")

	empty := start(t, nil)
	for _, path := range []string{"/", "/v1/channels"} {
		empty.want(t, "GET", path, "", 404, "nothing is served at "+path)
		empty.want(t, "GET", path, "", 404, "nothing is served at "+path, upgrade...)
	}
	empty.want(t, "GET", "/healthz", "", 403, "http.origins", "Origin", "https://evil.example")
	empty.want(t, "GET", "/healthz", "", 403, "http.hosts", "Host", "evil.example")
	empty.want(t, "GET", "/", "", 403, "http.origins", append(upgrade, "Origin", "https://evil.example")...)
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	h := start(t, func(_ *config.Config, d *server.Deps) {
		speak(d).routes = []dialect.Route{{Pattern: "/stream", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
		})}}
	})
	h.do(t, "GET", "/stream", "")
	h.do(t, "GET", "/healthz", "")
	h.do(t, "GET", "/nowhere/in/particular", "")
	h.do(t, "GET", "/healthz", "", "Host", "evil.example")
	h.do(t, "GET", "/", "", "Connection", "upgrade", "Upgrade", "websocket")
	_, text := h.do(t, "GET", "/metrics", "")
	for _, want := range []string{
		`parley_http_requests_total{code="200",route="/healthz"} 1`,
		`parley_http_requests_total{code="404",route="/"} 1`,
		`parley_http_requests_total{code="403",route="refused"} 1`,
		`parley_http_request_seconds_count{route="/healthz"} 1`,
		`parley_http_requests_total{code="200",route="/stream"} 1`,
		`parley_refused_total{reason="host"} 1`,
		`parley_upgrades_total 1`,
		"\nparley_connections ",
		`parley_build_info{version="v1.2.3"} 1`,
		`go_goroutines `,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics lack %q", want)
		}
	}
	if strings.Contains(text, `parley_http_request_seconds_count{route="/stream"}`) {
		t.Error("a stream counts as a request that took long")
	}
	if strings.Contains(text, "nowhere") {
		t.Error("a client's path became a label")
	}
	h.want(t, "GET", "/metrics", "", 401, "needs the role reader", "X-Forwarded-For", "203.0.113.1")
}

func TestKeysOverHTTP(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	h.want(t, "GET", "/v1/keys", "", 200, `{"keys":[]}`)

	add := func(body string, header ...string) server.NewKey {
		t.Helper()
		status, text := h.do(t, "POST", "/v1/keys", body, header...)
		var key server.NewKey
		if err := json.Unmarshal([]byte(text), &key); err != nil || status != 201 {
			t.Fatalf("%d %s", status, text)
		}
		return key
	}
	operator := add(`{"role":"operator"}`)
	// From now on a client on loopback without a key is anonymous.
	h.want(t, "GET", "/v1/keys", "", 401, "auth_failed")
	as := func(key server.NewKey) []string { return []string{"Authorization", "Bearer " + key.Token} }
	reader := add(`{"role":"reader"}`, as(operator)...)
	alice := add(`{"agent":"alice"}`, as(operator)...)
	if alice.Role != access.Agent || alice.Agent != "alice" || !h.keys.VerifyAgent("alice", alice.Token) {
		t.Errorf("alice's key is %+v", alice)
	}
	for _, key := range []server.NewKey{reader, alice} {
		h.want(t, "GET", "/v1/keys", "", 403, "needs the role operator; this key has the role "+string(key.Role), as(key)...)
		h.want(t, "POST", "/v1/keys", `{"role":"operator"}`, 403, "access_denied", as(key)...)
		h.want(t, "DELETE", "/v1/keys/"+operator.ID, "", 403, "access_denied", as(key)...)
	}

	_, text := h.do(t, "GET", "/v1/keys", "", as(operator)...)
	var list server.KeyList
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]access.Key{operator.Key, reader.Key, alice.Key}, list.Keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if strings.Contains(text, "token") || strings.Contains(text, "hash") {
		t.Errorf("the listing shows secrets: %s", text)
	}

	h.want(t, "DELETE", "/v1/keys/"+reader.ID, "", 200, reader.ID, as(operator)...)
	h.want(t, "DELETE", "/v1/keys/"+reader.ID, "", 404, "not_found", as(operator)...)
	h.want(t, "GET", "/healthz", "", 401, "belongs to no key", as(reader)...)
	for body, want := range map[string]string{
		`{"role":"boss"}`:                 "is not a role",
		`{"role":"operator","agent":"a"}`: "not for both",
		`{"rolle":"operator"}`:            ", which is unknown; it may have agent, role, token; a key request looks like",
		`{"role":7}`:                      "/role is a number; it must be a string; a key request looks like",
		`{`:                               "a key request looks like",
		``:                                "a key request looks like",
		`{}`:                              "is not a role",
		`{"role":"agent"}`:                "is not an agent's name",
	} {
		h.want(t, "POST", "/v1/keys", body, 400, want, as(operator)...)
	}
	h.want(t, "PUT", "/v1/keys", "{}", 405, `"code":"invalid","detail":"PUT is not possible at /v1/keys; it is GET or POST"`, as(operator)...)
	h.want(t, "GET", "/v1/keys/"+alice.ID, "", 405, "DELETE", as(operator)...)
}

func TestBodyIsBounded(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *config.Config, _ *server.Deps) { c.Limits.Body = 100 })
	h.want(t, "POST", "/v1/keys", `{"agent":"`+strings.Repeat("a", 200)+`"}`, 413, "over 100 bytes (limits.body)")
}

// raw opens a plain connection to the hub.
func (h *hub) raw(t *testing.T) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", h.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestSlowPeersAreCutOff(t *testing.T) {
	t.Parallel()
	short := func(c *config.Config, d *server.Deps) {
		c.HTTP.HeaderTimeout, c.HTTP.BodyTimeout, c.HTTP.IdleTimeout = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
		d.Page = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	}
	for name, sent := range map[string]string{
		"says nothing":   "",
		"half a header":  "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
		"half a body":    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc",
		"half a chunk":   "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
		"idle afterward": "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, short).raw(t)
			if _, err := io.WriteString(c, sent); err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.Copy(io.Discard, c); errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
				t.Error("the connection was kept open")
			}
		})
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestHugeHeaderIsRefused(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *config.Config, _ *server.Deps) { c.HTTP.MaxHeader = 1 << 10 })
	c := h.raw(t)
	if _, err := fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n", strings.Repeat("x", 8<<10)); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.Contains(line, "431") {
		t.Errorf("answered %q, %v", line, err)
	}
}

// refusals returns a log that sends the refusals of connections.
func refusals() (*slog.Logger, <-chan string) {
	lines := make(chan string, 100)
	return slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
		if strings.Contains(string(p), "connection refused") {
			select {
			case lines <- string(p):
			default:
			}
		}
		return len(p), nil
	}), nil)), lines
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	log, refused := refusals()
	h := start(t, func(c *config.Config, d *server.Deps) {
		c.HTTP.MaxConnections, c.Limits.ConnectionsPeer = 2, 2
		d.Log = log
	})
	if _, _, err := h.keys.Add(t.Context(), access.Operator, "", nil); err != nil { // or everyone here were operator
		t.Fatal(err)
	}
	ask := func(c net.Conn) error {
		status, err := ask(c, "")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		return err
	}
	first, second := h.raw(t), h.raw(t)
	for _, c := range []net.Conn{first, second} {
		if err := ask(c); err != nil {
			t.Fatal(err)
		}
	}
	another := func() error { // a reset may come as early as the dial
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", h.Addr().String())
		if err != nil {
			return err
		}
		defer c.Close()
		return ask(c)
	}
	if another() == nil {
		t.Fatal("a third connection was served")
	}
	if line := <-refused; !strings.Contains(line, "http.max_connections") {
		t.Errorf("it is logged as %q", line)
	}
	if err := ask(first); err != nil {
		t.Errorf("the first connection suffered: %v", err)
	}
	// A closed one makes room, as soon as the hub has noticed.
	_ = second.Close()
	for another() != nil {
		if t.Context().Err() != nil {
			t.Fatal("no room was made")
		}
	}
}
