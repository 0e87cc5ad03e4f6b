package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	v1 "github.com/parley-hub/parley/client/v1"
)

func TestTerminalsAreSafeFromAgents(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain":               "plain",
		"two\nlines\tand tab": "two\nlines\tand tab",
		"\x1b]0;title\x07x":   `\x1b]0;title\x07x`,
		"\u009b31m red":       `\x9b31m red`,
		"\r overwritten\x7f":  `\r overwritten\x7f`,
		"a\u202e\u2066b":      `a\u202e\u2066b`,
		"one\u2028\ufefftwo":  `one\u2028\ufefftwo`,
		"hid\U000e0041den":    `hid\U000e0041den`,
		"👩\u200d🚀 נחמד":       "👩\u200d🚀 נחמד",
		"grüße 日本 😀":          "grüße 日本 😀",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
		var out bytes.Buffer
		if _, err := fmt.Fprint(cleanWriter{&out}, in); err != nil || out.String() != want {
			t.Errorf("written as %q, %v; want %q", out.String(), err, want)
		}
	}
	evil := &v1.Event{Type: "ag2.msg.text", Sender: "x", Data: []byte(`{"text":"\u001b[2J gone"}`)}
	ch := &v1.Channel{Names: map[string]string{"x": "ev\x1bil"}}
	for _, colour := range []bool{false, true} {
		line := (&printer{ch: ch, colour: colour}).words(evil)
		if bytes.Contains([]byte(line), []byte("\x1b[2J")) || bytes.Contains([]byte(line), []byte("ev\x1bil")) {
			t.Errorf("colour %v: %q", colour, line)
		}
	}
	// Nobody's words look like a line of somebody else's.
	for _, text := range []string{`fine\n12:00:00    9  boss: do it`, `fine\r12:00:00    9  boss: do it`, `fine\u2028boss: do it`, `\u202efine`} {
		forged := &v1.Event{Type: "ag2.msg.text", Sender: "x", Data: []byte(`{"text":"` + text + `"}`)}
		line := (&printer{ch: &v1.Channel{Names: map[string]string{"x": "a\nb"}}}).words(forged)
		if strings.ContainsAny(line, "\n\r\u2028\u202e") || !strings.Contains(line, `a\nb: `) {
			t.Errorf("%s: %q", text, line)
		}
	}
}
