//go:build !unix

package openfiles

// Limit returns the most files that the process may have open; it is not known here.
func Limit() (limit uint64, ok bool) { return 0, false }
