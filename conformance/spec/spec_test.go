package spec_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
)

// A check that must fail would fail this test, so each runs in a child.
const probe = "PARLEY_SPEC_PROBE"

var probes = map[string]struct {
	statement string
	body      func(*spec.T)
	want      string // in the child's output; empty when it must pass
}{
	"equal":          {"seed-000#1: in words", func(t *spec.T) { t.Equal([]int{1}, []int{1}) }, ""},
	"unequal":        {"seed-000#1: in words", func(t *spec.T) { t.Equal([]int{1}, []int{2}) }, "got differs from want"},
	"two statements": {"seed-000#1 seed-000#2: both of them", func(t *spec.T) { t.True(true, "x") }, ""},
	"with a comma":   {"seed-000#1, seed-000#2: in words", func(t *spec.T) { t.True(true, "x") }, ""},
	"three":          {"seed-000#1 seed-000#2 seed-000#3: in words", func(t *spec.T) { t.True(true, "x") }, "names one or two statements"},
	"none":           {": a clause", func(t *spec.T) { t.True(true, "x") }, "names one or two statements"},
	"no words":       {"seed-000#1", func(t *spec.T) { t.True(true, "x") }, "say in a few words"},
	"one word":       {"seed-000#1: both", func(t *spec.T) { t.True(true, "x") }, "say in a few words"},
	"no letter":      {"seed-000#1: 1 2", func(t *spec.T) { t.True(true, "x") }, "say in a few words"},
	"unknown":        {"seed-000#4000: in words", func(t *spec.T) { t.True(true, "x") }, "there is no statement seed-000#4000"},
	"no name":        {"seventeen: in words", func(t *spec.T) { t.True(true, "x") }, "is not the name of a statement"},
	"no comparison":  {"seed-000#1: in words", func(t *spec.T) { t.NoError(nil) }, "made no comparison"},
	"an error":       {"seed-000#1: in words", func(t *spec.T) { t.NoError(errors.New("boom")) }, "unexpected error: boom"},
	"nested":         {"seed-000#1: in words", func(t *spec.T) { t.Run("sub", func(*testing.T) {}) }, "only a leaf holds one"},
	"not true":       {"seed-000#1: in words", func(t *spec.T) { t.True(false, "%d things", 2) }, "does not hold: 2 things"},
	"false":          {"seed-000#1: in words", func(t *spec.T) { t.False(false, "x") }, ""},
	"not false":      {"seed-000#1: in words", func(t *spec.T) { t.False(true, "x") }, "does not hold: not (x)"},
	"error is":       {"seed-000#1: in words", func(t *spec.T) { t.ErrorIs(&fs.PathError{Err: fs.ErrExist}, fs.ErrExist) }, ""},
	"error is not":   {"seed-000#1: in words", func(t *spec.T) { t.ErrorIs(nil, fs.ErrExist) }, "got error <nil>, want file already exists"},
	"error text":     {"seed-000#1: in words", func(t *spec.T) { t.ErrorContains(errors.New("a b"), "a", "b") }, ""},
	"error no text":  {"seed-000#1: in words", func(t *spec.T) { t.ErrorContains(errors.New("a b"), "a", "c") }, `error "a b" lacks "c"`},
	"no error":       {"seed-000#1: in words", func(t *spec.T) { t.ErrorContains(nil, "a") }, "got no error"},
	"text":           {"seed-000#1: in words", func(t *spec.T) { t.Contains("a b", "a", "b") }, ""},
	"no text":        {"seed-000#1: in words", func(t *spec.T) { t.Contains("a b", "a", "c") }, `"a b" lacks "c"`},
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, p := range probes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProbe$", "-test.v")
			child.Env = append(os.Environ(), probe+"="+name)
			out, err := child.CombinedOutput()
			if p.want == "" && err != nil {
				t.Fatalf("failed: %s", out)
			}
			if p.want != "" && (err == nil || !strings.Contains(string(out), p.want)) {
				t.Fatalf("want a failure with %q, got %v: %s", p.want, err, out)
			}
			if p.want != "" {
				return
			}
			names, _, _ := strings.Cut(p.statement, ":")
			for id := range strings.FieldsSeq(strings.ReplaceAll(names, ",", " ")) {
				if !strings.Contains(string(out), " "+spec.Attribute+" "+id+"\n") {
					t.Errorf("%s is not reported as an attribute: %s", id, out)
				}
			}
		})
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	p, ok := probes[os.Getenv(probe)]
	if ok {
		spec.Check(t, p.statement, p.body)
	}
}
