package main

import (
	"bytes"
	"strings"
	"testing"
)

// Where nobody looks on, the start-up screen is plain lines that a program can
// cut at their colon.
func TestTheBannerIsPlainWhenPiped(t *testing.T) {
	t.Parallel()
	s := started{
		Version: "v1", PID: 7, URL: "http://127.0.0.1:7440", Also: []string{"http://192.0.2.7:7440"}, Agents: "ws://127.0.0.1:7440",
		Dialects: map[string]string{"hpd": "http://127.0.0.1:7440/hpd"}, Data: "d", Access: "all", Warnings: []string{"beware"},
	}
	var out bytes.Buffer
	if err := s.write(&out); err != nil {
		t.Fatal(err)
	}
	want := `Parley v1 is running (pid 7)
hub: http://127.0.0.1:7440
also: http://192.0.2.7:7440
agents: ws://127.0.0.1:7440
hpd: http://127.0.0.1:7440/hpd
data: d
access: all
warning: beware
`
	if out.String() != want {
		t.Errorf("piped:\n%s", out.String())
	}
	out.Reset()
	s.terminal = true
	if err := s.write(&out); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"\n    hub     http://127.0.0.1:7440\n    also    http://192.0.2.7:7440\n", "Try next:", "Stop with Ctrl+C."} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("on a terminal it lacks %q:\n%s", text, out.String())
		}
	}
}

func TestGoRunIsRecognised(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("90461aef", 8)
	for path, want := range map[string]bool{
		"/tmp/go-build2911917458/b001/exe/parley":           true,
		"/home/ann/.cache/go-build/90/" + sum + "-d/parley": true,
		"/srv/cache/90/" + sum + "-d/parley":                true, // GOCACHE=/srv/cache
		"/usr/bin/parley":                                   false,
		"/srv/cache/90/" + sum[:10] + "-d/parley":           false,
	} {
		if got := isGoRun(path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}
