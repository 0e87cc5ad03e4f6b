package main

import (
	"net"
	"os"
	"strings"
	"testing"
)

// TestHPDPage types everything that the page about HPD shows, from top to
// bottom, on a port that is free.
func TestHPDPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/hpd.md")
	if err != nil {
		t.Fatal(err)
	}
	script := "set -e\ntrap 'kill $(jobs -p); wait' EXIT\n"
	for _, block := range shBlocks.FindAllStringSubmatch(string(text), -1) {
		script += block[1]
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	script = strings.ReplaceAll(script, "127.0.0.1:7440", l.Addr().String())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	out := newScene(t, false).output(t, script)
	for _, want := range []string{
		"parrot takes part as a producer", `"id":"s-1"`, `"runtimeRunId":"`, ": hello \n", ": world\n", `data: {"version":"1.0",`,
		"other-tone  is a fork of main with 2 messages", "FORKED FROM",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the page's commands never print %q", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}
