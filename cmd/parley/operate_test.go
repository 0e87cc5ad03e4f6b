package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-hub/parley/server/config"
)

// The page for operators names every series that a hub shows, and no other.
func TestEverySeriesIsDescribed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	collector := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(collector.Close)
	at := runningHub(t, func(cfg *config.Config) { cfg.Tracing.OTLP = collector.URL })
	_, metrics := ask(t, http.MethodGet, at.URL+"/metrics", "")
	// One is shown only once something was refused, two only of a store on disk.
	shown := map[string]bool{"parley_posts_refused_total": true, "parley_data_bytes": true, "parley_disk_free_bytes": true}
	for _, found := range regexp.MustCompile(`(?m)^# HELP (parley_\w+)`).FindAllStringSubmatch(metrics, -1) {
		shown[found[1]] = true
		if !strings.Contains(string(page), "`"+found[1]+"`") {
			t.Errorf("%s has no row", found[1])
		}
	}
	for _, f := range clusterFigures { // only of a node
		name, _, _ := strings.Cut(strings.TrimPrefix(f.about.String(), `Desc{fqName: "`), `"`)
		if shown[name] = true; !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("%s has no row", name)
		}
	}
	for _, found := range regexp.MustCompile("`(parley_\\w+)").FindAllStringSubmatch(string(page), -1) {
		if !shown[found[1]] {
			t.Errorf("%s is described and does not exist", found[1])
		}
	}
}

// What a hub recorded is with the collector when it has ended, and what the
// collector is told to prove who asks is shown nowhere.
func TestSpansAreSentByTheEnd(t *testing.T) {
	t.Parallel()
	var told atomic.Pointer[string]
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		text := r.Method + " " + r.URL.Path + " " + r.Header.Get("Authorization") + " " + string(body)
		told.Store(&text)
	}))
	t.Cleanup(collector.Close)
	file := filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(file, []byte("Authorization: Bearer s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // once the hub has ended
		if text := told.Load(); text == nil || !strings.HasPrefix(*text, "POST /v1/traces Bearer s3cret ") || !strings.Contains(*text, "agent.lifetime hana") {
			t.Errorf("the collector was told %v", text)
		}
	})
	at := runningHub(t, func(cfg *config.Config) { cfg.Tracing.OTLP, cfg.Tracing.Headers = collector.URL, file })
	if code, text := ask(t, http.MethodPost, at.URL+"/v1/agents", `{"name":"hana"}`); code != http.StatusCreated {
		t.Fatalf("%d %s", code, text)
	}
	code, stdout, stderr := call(t, nil, "config", "show", "--set", "tracing.otlp="+collector.URL, "--set", "tracing.headers="+file)
	if code != 0 || !strings.Contains(stdout, file) || strings.Contains(stdout+stderr, "s3cret") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
}
