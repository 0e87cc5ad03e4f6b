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
