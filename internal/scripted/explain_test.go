package scripted_test

import (
	"errors"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/parley-hub/parley/internal/scripted"
)

// TestExplain reads scripts that are wrong; none is told of in Go's words.
func TestExplain(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"- sya: hello":                  "line 1: a line has no sya; it has say, set, delete, handoff, tool, reason, finish, wait",
		"say: hello":                    "line 1: a map stands where a list of lines is wanted",
		"hello":                         "line 1: text (hello) stands where a list of lines is wanted",
		"- hello\n- 7":                  "line 1: text (hello) stands where a line is wanted; line 2: a number (7) stands where a line is wanted",
		"- say: [a]":                    "line 1: a list stands where text is wanted",
		"- say: {a: b}":                 "line 1: a map stands where text is wanted",
		"- set: area":                   "line 1: text (area) stands where a map is wanted",
		"- delete: area":                "line 1: text (area) stands where a list of names is wanted",
		"- wait: soon":                  "line 1: text (soon) stands where a time like 2s is wanted",
		"- say: hi\n  wait: 2s\n- a: b": "line 3: a line has no a; it has say, set, delete, handoff, tool, reason, finish, wait",
	} {
		decoder := yaml.NewDecoder(strings.NewReader(script))
		decoder.KnownFields(true)
		var lines []scripted.Line
		if got := scripted.Explain(decoder.Decode(&lines)).Error(); got != want {
			t.Errorf("%q:\n got %s\nwant %s", script, got, want)
		}
	}
	other := errors.New("something else")
	if got := scripted.Explain(other); got != other { //nolint:errorlint // the very same
		t.Errorf("%v became %v", other, got)
	}
}
