package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
	"github.com/parley-hub/parley/server/dialect"
)

// fake is a dialect that does what its fields say.
type fake struct {
	name    string
	routes  []dialect.Route
	upgrade http.Handler
	start   func(context.Context) error
	drain   func(context.Context)
	ready   atomic.Pointer[error]
	prometheus.Collector
}

func newFake(name string) *fake {
	return &fake{name: name, Collector: prometheus.NewCounter(prometheus.CounterOpts{Name: "parley_" + name + "_total", Help: "x"})}
}

// speak adds the one fake of most tests, or finds it.
func speak(d *server.Deps) *fake {
	if len(d.Dialects) == 0 {
		d.Dialects = []server.Dialect{newFake("fake")}
	}
	return d.Dialects[0].(*fake)
}

func (f *fake) Name() string         { return f.name }
func (f *fake) Mount() dialect.Mount { return dialect.Mount{Routes: f.routes, Upgrade: f.upgrade} }
func (f *fake) Close() error         { return nil }

func (f *fake) Banner(base string) dialect.Banner {
	return dialect.Banner{Label: f.name, URL: base + "/" + f.name}
}

func (f *fake) Start(ctx context.Context) error {
	if f.start != nil {
		return f.start(ctx)
	}
	return nil
}

func (f *fake) Drain(ctx context.Context) error {
	if f.drain != nil {
		f.drain(ctx)
	}
	return ctx.Err()
}

func (f *fake) Ready(context.Context) error {
	if err := f.ready.Load(); err != nil {
		return *err
	}
	return nil
}

func TestADialectIsStartedReportsAndIsDrained(t *testing.T) {
	t.Parallel()
	var started, drained atomic.Int32
	one, two := newFake("one"), newFake("two")
	for _, f := range []*fake{one, two} {
		f.start = func(context.Context) error { started.Add(1); return nil }
		f.drain = func(context.Context) { drained.Add(1) }
		f.routes = []dialect.Route{{Pattern: "/" + f.name + "/", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if started.Load() != 2 {
				t.Error("served before every dialect was started")
			}
			_, _ = io.WriteString(w, f.name)
		})}}
	}
	h := start(t, func(_ *config.Config, d *server.Deps) { d.Dialects = []server.Dialect{one, two} })
	h.want(t, "GET", "/one/x", "", 200, "one")
	h.want(t, "GET", "/two/", "", 200, "two")
	h.want(t, "GET", "/metrics", "", 200, "parley_one_total 0")
	h.want(t, "GET", "/metrics", "", 200, "parley_two_total 0")
	h.want(t, "GET", "/readyz", "", 200, `{"name":"one","ok":true},{"name":"two","ok":true}`)
	broken := errors.New("the broker is gone")
	two.ready.Store(&broken)
	h.want(t, "GET", "/readyz", "", 503, `{"name":"two","ok":false,"reason":"the broker is gone"}`)
	h.stop()
	err := <-h.done
	h.done <- err
	if err != nil || drained.Load() != 2 {
		t.Errorf("error %v, %d drained", err, drained.Load())
	}
}

func TestWhatTwoDialectsWantIsRefused(t *testing.T) {
	t.Parallel()
	handler := http.NotFoundHandler()
	tests := map[string]struct {
		edit func(one, two *fake)
		want string
	}{
		"every upgrade": {func(one, two *fake) { one.upgrade, two.upgrade = handler, handler }, "every WebSocket path"},
		"one route": {func(one, two *fake) {
			one.routes = []dialect.Route{{Pattern: "/x/", Handler: handler}}
			two.routes = one.routes
		}, `route "/x/" of dialect two`},
		"the server's route": {func(one, _ *fake) { one.routes = []dialect.Route{{Pattern: "/v1/keys", Handler: handler}} }, "cannot be served"},
		"one name":           {func(one, two *fake) { two.name = one.name }, `named "one"`},
		"no handler":         {func(one, _ *fake) { one.routes = []dialect.Route{{Pattern: "/x/"}} }, "no handler"},
		"one metric":         {func(one, two *fake) { two.Collector = one.Collector }, "dialect two: duplicate"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := access.NewKeys()
			one, two := newFake("one"), newFake("two")
			tt.edit(one, two)
			cfg := config.Core.Default()
			cfg.HTTP.Listen = "127.0.0.1:0"
			_, err := server.New(t.Context(), cfg, server.Deps{Keys: keys, Dialects: []server.Dialect{one, two}})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestADialectThatCannotStartEndsTheServer(t *testing.T) {
	t.Parallel()
	keys := access.NewKeys()
	f := newFake("broker")
	f.start = func(context.Context) error { return errors.New("no broker answers") }
	cfg := config.Core.Default()
	cfg.HTTP.Listen = "127.0.0.1:0"
	s, err := server.New(t.Context(), cfg, server.Deps{Keys: keys, Dialects: []server.Dialect{f}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "dialect broker: no broker answers") {
		t.Errorf("Run: %v", err)
	}
	if _, err := http.Get(s.URL()); err == nil {
		t.Error("the server still listens")
	}
}

// A route may take more, less, or slower bodies than others.
func TestARouteBringsItsOwnBodyLimits(t *testing.T) {
	t.Parallel()
	read := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
	})
	h := start(t, func(c *config.Config, d *server.Deps) {
		c.Limits.Body, c.HTTP.BodyTimeout = 10, 50*time.Millisecond
		speak(d).routes = []dialect.Route{
			{Pattern: "/plain/", Handler: read},
			{Pattern: "/own/", Handler: read, Body: func(r *http.Request) dialect.Body {
				if r.Method == http.MethodPut {
					return dialect.Body{Bytes: 1000, Time: time.Minute}
				}
				return dialect.Body{Bytes: 5}
			}},
		}
	})
	long := strings.Repeat("x", 100)
	h.want(t, "PUT", "/plain/", long, 413, "")
	h.want(t, "PUT", "/own/a", long, 200, "")
	h.want(t, "PUT", "/own/a", strings.Repeat(long, 11), 413, "")
	h.want(t, "POST", "/own/a", "123456", 413, "")
	h.want(t, "POST", "/own/a", "12345", 200, "")

	for path, want := range map[string]int{"/plain/": 413, "/own/": 200} {
		body, feed := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, h.URL()+path, body)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = feed.Write([]byte("12345"))
			<-time.After(200 * time.Millisecond)
			_ = feed.Close()
		}()
		answer, err := h.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("a slow body to %s: %d, want %d", path, answer.StatusCode, want)
		}
	}
}

// A token in the URL counts if a route asks for it, and no handler after the
// guard sees it, whether it is valid or not.
func TestATokenInTheURL(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	show := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := access.From(r.Context())
		slog.New(slog.NewTextHandler(&log, nil)).Info("asked", "url", r.URL, "uri", r.RequestURI)
		_, _ = io.WriteString(w, string(who.Role)+" "+r.URL.String()+" "+r.RequestURI)
	})
	h := start(t, func(_ *config.Config, d *server.Deps) {
		speak(d).routes = []dialect.Route{
			{Pattern: "/asks/", Handler: show, Token: dialect.QueryToken},
			{Pattern: "/path/", Handler: show, Token: func(u *url.URL) string {
				rest, found := strings.CutPrefix(u.Path, "/path/~")
				token, rest, _ := strings.Cut(rest, "/")
				if !found {
					return ""
				}
				u.Path, u.RawPath = "/path/"+rest, ""
				return token
			}},
			{Pattern: "/plain/", Handler: show},
		}
	})
	token, _, err := h.keys.Add(t.Context(), access.Reader, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	h.want(t, "GET", "/asks/a?x=1&access_token="+token, "", 200, "reader /asks/a?x=1 /asks/a?x=1")
	h.want(t, "GET", "/path/~"+token+"/b?y=2", "", 200, "reader /path/b?y=2 /path/b?y=2")
	h.want(t, "GET", "/asks/a?access_token=wrong", "", 401, "belongs to no key")
	h.want(t, "GET", "/asks/a?access_token=wrong", "", 200, "reader /asks/a", "Authorization", "Bearer "+token)
	if status, text := h.do(t, "GET", "/plain/?access_token="+token, ""); status != 200 || strings.HasPrefix(text, "reader") {
		t.Errorf("a path that does not ask: %d %s", status, text)
	}
	log.Reset()
	h.do(t, "GET", "/asks/a?access_token="+token, "")
	if strings.Contains(log.String(), token) {
		t.Errorf("logged: %s", log.String())
	}
}

// An exact route gets paths unchanged, answers its own refusals, and owns
// every path below it; other paths are redirected to their clean form.
func TestAnExactRoute(t *testing.T) {
	t.Parallel()
	show := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "got "+r.URL.EscapedPath()) })
	h := start(t, func(_ *config.Config, d *server.Deps) {
		speak(d).routes = []dialect.Route{
			{Pattern: "/exact/", Handler: show, Exact: true, Token: dialect.QueryToken, Refuse: func(w http.ResponseWriter, r *http.Request, err error) {
				w.WriteHeader(http.StatusTeapot)
				_, _ = io.WriteString(w, "refused "+r.URL.Path+": "+err.Error())
			}},
			{Pattern: "/clean/", Handler: show},
		}
	})
	for _, path := range []string{"/exact//a", "/exact/a/../b", "/exact/../v1/keys", "/exact/./", "/exact/a%2F..%2Fb", "/exact//"} {
		h.want(t, "GET", path, "", 200, "got "+path)
	}
	for _, path := range []string{"/clean//a", "/clean/a/../b"} {
		if status, text := h.do(t, "GET", path, ""); status == 200 && text == "got "+path {
			t.Errorf("%s is served as it came", path)
		}
	}
	h.want(t, "GET", "/exact/a?access_token=wrong", "", http.StatusTeapot, "refused /exact/a: ")
	h.want(t, "GET", "/exact/../x", "", http.StatusTeapot, "refused ", "Origin", "https://elsewhere.example")
	h.want(t, "GET", "/clean/a", "", 403, "http.origins", "Origin", "https://elsewhere.example")
}
