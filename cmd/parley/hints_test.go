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
		_, _ = io.WriteString(w, "<html>\nIt works!\n</html>")
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
		secure.URL:                   "→ nobody that this machine trusts signed the hub's certificate: add --ca FILE, or set PARLEY_CA",
		plainly.URL:                  `"<html> It works! </html>"` + "\n  → that address is no hub's",
		"http://no..such..host:7440": "→ that name leads to no machine: check its spelling",
	} {
		for _, args := range [][]string{{"agents", "list"}, {"agent", "echo", "parrot"}} {
			code, _, stderr := call(t, nil, append(args, "--hub", url)...)
			if code != 1 || !strings.Contains(stderr, want) {
				t.Errorf("%s: %v: exit %d, %s; want %s", url, args, code, stderr, want)
			}
			if args[0] == "agents" && strings.Contains(stderr, "is it running?") != strings.Contains(want, "start a hub") {
				t.Errorf("%s: %s", url, stderr)
			}
		}
	}
	// The doctor, too, tells what is wrong with the address.
	for url, want := range map[string]string{
		"http://" + freeAddress(t):                         "→ start a hub with parley serve",
		strings.Replace(plainly.URL, "http:", "https:", 1): "→ that address does not speak TLS: name it with http://",
		strings.Replace(secure.URL, "https:", "http:", 1):  "→ name it with https://",
		secure.URL:  "→ nobody that this machine trusts signed the hub's certificate: add --ca FILE, or set PARLEY_CA",
		plainly.URL: "is no hub's address: /readyz answers 200 OK, with a page",
	} {
		if code, stdout, _ := call(t, nil, "doctor", "--data", t.TempDir(), "--hub", url); code != 1 || !strings.Contains(stdout, want) {
			t.Errorf("doctor of %s: exit %d, %s; want %s", url, code, stdout, want)
		}
	}
	// What is not the address of a hub at all is not asked.
	for url, want := range map[string]string{
		"127.0.0.1:7440":                 "it looks like http://127.0.0.1:7440",
		"ws://127.0.0.1:7440":            "it looks like http://127.0.0.1:7440",
		"http://127.0.0.1:74400":         "has no port from 1 to 65535",
		"http://127.0.0.1:7440/console/": "is a part of a hub; the hub itself is http://127.0.0.1:7440",
		"http://127.0.0.1:7440/hpd":      "is a part of a hub; the hub itself is http://127.0.0.1:7440",
	} {
		if code, _, stderr := call(t, nil, "agents", "list", "--hub", url); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %s; want %s", url, code, stderr, want)
		}
	}
}

// TestATokenOfAFile: a token ends where its line does, whatever the file's line ends.
func TestATokenOfAFile(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"agents":[]}`)
	}))
	t.Cleanup(hub.Close)
	if code, _, stderr := call(t, []string{"PARLEY_TOKEN=parley_token\r\n"}, "agents", "list", "--hub", hub.URL); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if sent := <-got; sent != "Bearer parley_token" {
		t.Errorf("%q was sent", sent)
	}
	code, _, stderr := call(t, []string{"PARLEY_TOKEN=parley\ntoken"}, "agents", "list", "--hub", hub.URL)
	if code != 2 || !strings.Contains(stderr, "the token has control characters, such as a line break, inside") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
