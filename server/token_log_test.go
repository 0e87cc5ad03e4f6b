package server_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
	"github.com/parley-hub/parley/server/dialect"
)

// lines is a log that several goroutines write.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// No token of a URL is in the log, in the metrics or in an answer, valid or
// not, on paths that accept one, on those that do not, and on those without a
// route.
func TestTokensInURLsAreNeverLogged(t *testing.T) {
	t.Parallel()
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			panic("broken handler")
		}
		_, _ = io.WriteString(w, r.URL.Path)
	})
	for name, at := range map[string]func(token string) string{
		"asked for":         func(token string) string { return "/asks/a?x=1&access_token=" + token },
		"in the path":       func(token string) string { return "/path/~" + token + "/a" },
		"not asked for":     func(token string) string { return "/plain/?access_token=" + token },
		"nobody's":          func(token string) string { return "/nowhere?access_token=" + token },
		"the server's own":  func(token string) string { return "/v1/keys?access_token=" + token },
		"asked for, broken": func(token string) string { return "/asks/%20a?access_token=" + token + "&%zz" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &lines{}
			h := start(t, func(_ *config.Config, d *server.Deps) {
				d.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				speak(d).routes = []dialect.Route{
					{Pattern: "/asks/", Handler: serve, Token: dialect.QueryToken},
					{Pattern: "/path/", Handler: serve, Token: func(u *url.URL) string {
						token, rest, _ := strings.Cut(strings.TrimPrefix(u.Path, "/path/~"), "/")
						u.Path, u.RawPath = "/path/"+rest, ""
						return token
					}},
					{Pattern: "/plain/", Handler: serve},
				}
			})
			token, _, err := h.keys.Add(t.Context(), access.Reader, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"wrong-token-of-a-person", token} {
				for _, header := range [][]string{nil, {"Origin", "https://elsewhere.example"}} {
					if status, answer := h.do(t, http.MethodGet, at(secret), "", header...); strings.Contains(answer, secret) {
						t.Errorf("%d answers with the token: %s", status, answer)
					}
				}
				if r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL()+at(secret), nil); err == nil {
					if answer, err := h.client.Do(r); err == nil { // a broken handler ends the connection
						_ = answer.Body.Close()
					}
				}
			}
			_, metrics := h.do(t, http.MethodGet, "/metrics", "")
			for _, secret := range []string{"wrong-token-of-a-person", token} {
				if strings.Contains(log.String(), secret) || strings.Contains(metrics, secret) {
					t.Errorf("%s is in the log or the metrics:\n%s", secret, log)
				}
			}
			if log.String() == "" {
				t.Error("nothing was logged at all")
			}
		})
	}
}
