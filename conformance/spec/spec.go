// Package spec ties a test to the numbered statements it holds. Only a leaf
// subtest run through Check counts, and only if it compared something.
package spec

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/conformance"
)

// Attribute is the test attribute under which a held statement is reported.
const Attribute = "spec"

// Check runs fn as a subtest that holds one or two statements:
//
//	spec.Check(t, "ag2-hub#3: a wrong token is refused", func(t *spec.T) { … })
//	spec.Check(t, "ag2-hub#16 seed-000#53: everyone but the sender gets it", func(t *spec.T) { … })
//
// What follows the colon says in a few words what holds, or which clause of the
// statement, so that a reader needs no other file. The subtest fails if it
// names an unknown statement, has fewer than two words after the colon, or
// made no comparison.
func Check(t *testing.T, statement string, fn func(t *T)) {
	t.Helper()
	ids, err := parse(statement)
	t.Run(statement, func(t *testing.T) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			t.Attr(Attribute, id.String())
		}
		c := &T{T: t}
		fn(c)
		if c.compared.Load() == 0 && !t.Failed() {
			t.Fatalf("%s: made no comparison, so it holds nothing", statement)
		}
	})
}

func parse(statement string) ([]conformance.ID, error) {
	names, words, _ := strings.Cut(statement, ":")
	fields := strings.Fields(strings.ReplaceAll(names, ",", " "))
	if len(fields) == 0 || len(fields) > 2 {
		return nil, errors.New("spec: a check names one or two statements, not " + statement)
	}
	if len(strings.Fields(words)) < 2 || !strings.ContainsFunc(words, unicode.IsLetter) {
		return nil, errors.New("spec: say in a few words after a colon what holds: " + statement)
	}
	ids := make([]conformance.ID, 0, len(fields))
	for _, field := range fields {
		id, err := conformance.ParseID(field)
		if err != nil {
			return nil, err
		}
		if _, known := conformance.All()[id]; !known {
			return nil, errors.New("spec: there is no statement " + id.String())
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// T is a test with counted comparisons. Its comparisons end the test at the
// first difference; use them on the test's own goroutine.
type T struct {
	*testing.T
	compared atomic.Int64
}

// Run fails the test: only a leaf holds a statement.
func (t *T) Run(name string, _ func(*testing.T)) bool {
	t.Helper()
	t.Fatalf("spec: %s would nest under a statement; only a leaf holds one", name)
	return false
}

// Equal compares with go-cmp and shows the difference.
func (t *T) Equal(got, want any, opts ...cmp.Option) {
	t.Helper()
	t.compared.Add(1)
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Fatalf("got differs from want (-want +got):\n%s", diff)
	}
}

// True requires ok; what says in words what should hold.
func (t *T) True(ok bool, what string, args ...any) {
	t.Helper()
	t.compared.Add(1)
	if !ok {
		t.Fatalf("does not hold: "+what, args...)
	}
}

// False requires !ok; what says in words what should not hold.
func (t *T) False(ok bool, what string, args ...any) {
	t.Helper()
	t.True(!ok, "not ("+what+")", args...)
}

// NoError requires err to be nil. It does not count as a comparison, because
// nearly every test does it on the way.
func (t *T) NoError(err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// ErrorIs requires errors.Is(err, want).
func (t *T) ErrorIs(err, want error) {
	t.Helper()
	t.compared.Add(1)
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// ErrorContains requires an error whose text has every fragment.
func (t *T) ErrorContains(err error, fragments ...string) {
	t.Helper()
	t.compared.Add(1)
	if err == nil {
		t.Fatalf("got no error, want one with %q", fragments)
	}
	for _, fragment := range fragments {
		if !strings.Contains(err.Error(), fragment) {
			t.Fatalf("error %q lacks %q", err, fragment)
		}
	}
}

// Contains requires s to have every fragment.
func (t *T) Contains(s string, fragments ...string) {
	t.Helper()
	t.compared.Add(1)
	for _, fragment := range fragments {
		if !strings.Contains(s, fragment) {
			t.Fatalf("%q lacks %q", s, fragment)
		}
	}
}
