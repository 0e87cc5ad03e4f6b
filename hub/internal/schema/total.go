package schema

import "strconv"

// Bounds of counting a list: the entries counted and the entries read.
const (
	MaxCounted = 1000
	MaxScanned = 4096
)

// Total is the number of entries of a list. If Exact is false, counting ended at a
// bound and there are at least Count.
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

// String returns the count; 1000+ is at least 1000.
func (t Total) String() string {
	if t.Exact {
		return strconv.Itoa(t.Count)
	}
	return strconv.Itoa(t.Count) + "+"
}
