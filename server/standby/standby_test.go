package standby_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/server/problem"
	"github.com/parley-hub/parley/server/standby"
)

// stand returns a node that stands by, and who serves according to it.
func stand(t *testing.T) (url string, serving *atomic.Pointer[standby.Serving]) {
	t.Helper()
	serving = &atomic.Pointer[standby.Serving]{}
	serving.Store(&standby.Serving{Node: "b", Address: "https://b.example"})
	n := standby.Node{
		Name: "a", Version: "v1", Serving: func() standby.Serving { return *serving.Load() },
		Checks: []standby.Check{
			{Name: "fine", Run: func() error { return nil }},
			{Name: "broken", Run: func() error { return errors.New("a disk") }},
		},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "figures") }),
	}
	web := httptest.NewServer(n.Handler())
	t.Cleanup(web.Close)
	return web.URL, serving
}

func ask(t *testing.T, method, url string, header http.Header) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

// TestEveryRequestIsSentElsewhere: whatever is asked, a node that stands by does
// nothing and says who serves.
func TestEveryRequestIsSentElsewhere(t *testing.T) {
	t.Parallel()
	url, serving := stand(t)
	for _, c := range []struct{ method, path string }{
		{"GET", "/v1/channels"}, {"POST", "/v1/channels"}, {"DELETE", "/v1/keys/1"}, {"GET", "/"}, {"POST", "/readyz"}, {"POST", "/hpd/x"},
	} {
		answer, body := ask(t, c.method, url+c.path, nil)
		if c.path == "/readyz" {
			if answer.StatusCode != http.StatusServiceUnavailable && answer.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%v: %d", c, answer.StatusCode)
			}
			continue
		}
		var p problem.Problem
		if err := json.Unmarshal([]byte(body), &p); err != nil {
			t.Fatalf("%v: %v: %s", c, err, body)
		}
		if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") != "1" ||
			answer.Header.Get(standby.ServingHeader) != "https://b.example" || answer.Header.Get(standby.Header) != "a" ||
			p.Reason != fault.NotServing || p.Details[fault.DetailNode] != "b" || p.Details[fault.DetailAddress] != "https://b.example" {
			t.Errorf("%v is answered with %d, %v, %+v", c, answer.StatusCode, answer.Header, p)
		}
	}
	serving.Store(&standby.Serving{})
	answer, body := ask(t, "GET", url+"/v1/channels", nil)
	if answer.Header.Get(standby.ServingHeader) != "" || answer.Header.Get(standby.Header) != "a" || strings.Contains(body, "details") || !strings.Contains(body, "no node serves") {
		t.Errorf("nobody serves: %v, %s", answer.Header, body)
	}
}

// TestHealthOfANodeThatStandsBy: it is alive, is not ready, and shows callers
// on this machine what is wrong with it.
func TestHealthOfANodeThatStandsBy(t *testing.T) {
	t.Parallel()
	url, _ := stand(t)
	if answer, body := ask(t, "GET", url+"/healthz", nil); answer.StatusCode != http.StatusOK || !strings.Contains(body, `"version":"v1"`) {
		t.Errorf("healthz: %d %s", answer.StatusCode, body)
	}
	answer, body := ask(t, "GET", url+"/readyz", nil)
	for _, want := range []string{`"node b serves, at https://b.example"`, `{"name":"fine","ok":true}`, `"reason":"a disk"`, `"cluster":{"node":"a"`} {
		if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, want) {
			t.Errorf("readyz: %d without %s: %s", answer.StatusCode, want, body)
		}
	}
	proxied := http.Header{"X-Forwarded-For": {"10.0.0.1"}}
	if _, body := ask(t, "GET", url+"/readyz", proxied); strings.Contains(body, "a disk") {
		t.Errorf("readyz tells others: %s", body)
	}
	if _, body := ask(t, "GET", url+"/metrics", nil); body != "figures" {
		t.Errorf("metrics: %s", body)
	}
	if answer, body := ask(t, "GET", url+"/metrics", proxied); answer.StatusCode != http.StatusServiceUnavailable || strings.Contains(body, "figures") {
		t.Errorf("metrics for others: %d %s", answer.StatusCode, body)
	}
}

func TestWebSocketsAreClosedWithAComeBackCode(t *testing.T) {
	t.Parallel()
	url, _ := stand(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, answer, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(url, "http"), nil) //nolint:bodyclose // the library closes it
	if err != nil {
		t.Fatal(err)
	}
	if answer.Header.Get(standby.Header) != "a" || answer.Header.Get(standby.ServingHeader) != "https://b.example" {
		t.Errorf("the handshake has %v", answer.Header)
	}
	_ = conn.Write(ctx, websocket.MessageText, []byte(`{"what":"was on its way"}`))
	_, _, err = conn.Read(ctx)
	var closed websocket.CloseError
	if !errors.As(err, &closed) || closed.Code != websocket.StatusTryAgainLater || closed.Reason != "node b serves, at https://b.example" {
		t.Errorf("closed with %v", err)
	}
}
