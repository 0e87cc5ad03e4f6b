package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHintsTellApart: a hub that is not running, one that is asked with the wrong
// scheme, one whose authority nobody knows, and what is no hub.
func TestHintsTellApart(t *testing.T) {
	t.Parallel()
	answers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>It works!</html>")
	})
	plainly := httptest.NewServer(answers)
	t.Cleanup(plainly.Close)
	secure := httptest.NewUnstartedServer(answers)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	for url, want := range map[string]string{
		"http://" + freeAddress(t):                         "→ start a hub with parley serve, or name another with --hub URL",
		strings.Replace(plainly.URL, "http:", "https:", 1): "→ that address does not speak TLS: name it with http://",
		strings.Replace(secure.URL, "https:", "http:", 1):  "→ that address speaks TLS: name it with https://",
		secure.URL:  "→ nobody that this machine trusts signed the hub's certificate: add --ca FILE, or set PARLEY_CA",
		plainly.URL: "→ that address is no hub's",
	} {
		code, _, stderr := call(t, nil, "agents", "list", "--hub", url)
		if code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %s; want %s", url, code, stderr, want)
		}
	}
}
