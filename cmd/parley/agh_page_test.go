package main

import (
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
)

// shBlocks finds what a page lets its reader type.
var shBlocks = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestAGHPage types everything that the page about AGH shows, from top to
// bottom, on ports that are free.
func TestAGHPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/agh.md")
	if err != nil {
		t.Fatal(err)
	}
	script := "set -e\ntrap 'kill $(jobs -p); wait' EXIT\n"
	for _, block := range shBlocks.FindAllStringSubmatch(string(text), -1) {
		script += block[1]
	}
	for _, port := range []string{"7440", "7441", "4222"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, free, _ := net.SplitHostPort(l.Addr().String())
		script = strings.ReplaceAll(script, "127.0.0.1:"+port, "127.0.0.1:"+free)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	out := newScene(t, false).output(t, script)
	for _, want := range []string{
		"tug.s02", "sent ask-1", "When is high water?", "done ask-1", "completed: At six.", "state   completed", "1 hosted, 1 remote",
		`"text":"The tide turns."`, `"direct_id":"direct_84746c510d5845aa9078a8ca2f0f04a2"`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the page's commands never print %q", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}
