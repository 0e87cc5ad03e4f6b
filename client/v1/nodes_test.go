package v1_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/server/standby"
)

// standing returns a node that stands by; says returns who serves, each time
// the node is asked.
func standing(t *testing.T, start func(http.Handler) *httptest.Server, says func(asked int64) string) *httptest.Server {
	t.Helper()
	var asked atomic.Int64
	node := start(standby.Node{Name: "a", Serving: func() standby.Serving {
		if to := says(asked.Add(1)); to != "" {
			return standby.Serving{Node: "b", Address: to}
		}
		return standby.Serving{}
	}}.Handler())
	t.Cleanup(node.Close)
	return node
}

// TestTheNodeThatServesIsFound: whichever addresses are known, the node that
// serves gets the request, once.
func TestTheNodeThatServesIsFound(t *testing.T) {
	t.Parallel()
	var done atomic.Int64
	serving := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done.Add(1)
		_, _ = io.WriteString(w, `{"role":"operator"}`)
	}))
	defer serving.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	named := standing(t, httptest.NewServer, func(int64) string { return serving.URL })
	later := standing(t, httptest.NewServer, func(asked int64) string { // a takeover goes on
		if asked < 4 {
			return ""
		}
		return serving.URL
	})
	for what, addresses := range map[string]string{
		"the only one is it":        serving.URL,
		"the first is gone":         gone.URL + "," + serving.URL,
		"the first stands by":       named.URL + "," + gone.URL,
		"only one that stands by":   named.URL,
		"nobody serves for a while": later.URL,
		"gone, and one that waits":  gone.URL + ", " + named.URL,
	} {
		hub, err := v1.New(addresses, v1.Options{})
		if err != nil {
			t.Fatal(err)
		}
		before := done.Load()
		if err := hub.Call(t.Context(), http.MethodPost, "/v1/channels", map[string]string{}, nil); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if n := done.Load() - before; n != 1 || hub.URL() != serving.URL {
			t.Errorf("%s: done %d times, at %s", what, n, hub.URL())
		}
	}

	hub, err := v1.New(gone.URL+","+gone.URL, v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hub.Session(t.Context()); err == nil {
		t.Error("all are gone, and it was answered")
	}
	if _, err := v1.New("http://a,nonsense", v1.Options{}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("an address that is none: %v", err)
	}
}

// TestNoTokenGoesWhereNobodyHides: a client with an address with TLS follows
// none without it.
func TestNoTokenGoesWhereNobodyHides(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("asked without TLS") }))
	defer plain.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	secure := standing(t, httptest.NewTLSServer, func(asked int64) string {
		if asked == 3 {
			cancel()
		}
		return plain.URL
	})
	hub, err := v1.New(secure.URL, v1.Options{Token: "secret", HTTP: secure.Client()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hub.Session(ctx); err == nil {
		t.Error("it was answered")
	}
}
