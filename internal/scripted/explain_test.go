package scripted_test

import (
	"errors"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/parley-hub/parley/internal/scripted"
)

// TestExplain reads scripts that are wrong; no error uses Go's words.
func TestExplain(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"- sya: hello":                  "line 1: a line has no sya; it has say, set, delete, handoff, tool, reason, finish, wait",
		"say: hello":                    "line 1: a map is given where a list of lines is expected",
		"hello":                         "line 1: text (hello) is given where a list of lines is expected",
		"- hello\n- 7":                  "line 1: text (hello) is given where a line is expected; line 2: a number (7) is given where a line is expected",
		"- say: [a]":                    "line 1: a list is given where text is expected",
		"- say: {a: b}":                 "line 1: a map is given where text is expected",
		"- set: area":                   "line 1: text (area) is given where a map is expected",
		"- delete: area":                "line 1: text (area) is given where a list of names is expected",
		"- wait: soon":                  "line 1: text (soon) is given where a time like 2s is expected",
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
