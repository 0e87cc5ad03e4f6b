package schema

import "strconv"

// Counting a list is bounded, as a page of it is: by what it counts and by what it
// looks at.
const (
	MaxCounted = 1000
	MaxScanned = 4096
)

// Total is how many entries a list has. If Exact is false there are at least Count:
// counting ended at a bound.
type Total struct {
	Count int
	Exact bool
}

// Add counts one more; it returns false at the bound.
func (t *Total) Add() bool {
	if t.Count == MaxCounted {
		return false
	}
	t.Count++
	return true
}

// String is the count; 1000+ is at least so many.
func (t Total) String() string {
	if t.Exact {
		return strconv.Itoa(t.Count)
	}
	return strconv.Itoa(t.Count) + "+"
}
