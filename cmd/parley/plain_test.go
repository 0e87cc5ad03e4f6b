package main

import (
	"bytes"
	"fmt"
	"testing"
)

func TestTerminalsAreSafeFromAgents(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain":               "plain",
		"two\nlines\tand tab": "two\nlines\tand tab",
		"\x1b]0;title\x07x":   `\x1b]0;title\x07x`,
		"\u009b31m red":       `\x9b31m red`,
		"\r overwritten\x7f":  `\x0d overwritten\x7f`,
		"grüße 日本 😀":          "grüße 日本 😀",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
		var out bytes.Buffer
		if _, err := fmt.Fprint(plain{&out}, in); err != nil || out.String() != want {
			t.Errorf("written as %q, %v; want %q", out.String(), err, want)
		}
	}
	evil := &event{Type: "ag2.msg.text", Sender: "x", Data: []byte(`{"text":"\u001b[2J gone"}`)}
	ch := &channelInfo{Names: map[string]string{"x": "ev\x1bil"}}
	for _, colour := range []bool{false, true} {
		line := (&printer{ch: ch, colour: colour}).words(evil)
		if bytes.Contains([]byte(line), []byte("\x1b[2J")) || bytes.Contains([]byte(line), []byte("ev\x1bil")) {
			t.Errorf("colour %v: %q", colour, line)
		}
	}
}
