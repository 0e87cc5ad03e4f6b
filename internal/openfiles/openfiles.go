// Package openfiles reports how many files the process may have open, and how
// many of them connections may be. It opens none.
package openfiles

import "math"

// Store is how many files are kept for the journal, its backups and the rest of
// the process: with fewer, connections make the journal fail.
const Store = 1280

// Connections returns how many connections fit besides the store under a limit
// of open files. A limit that is small for the store itself is halved.
func Connections(limit uint64) int {
	left := limit / 2
	if limit > 2*Store {
		left = limit - Store
	}
	return int(max(min(left, math.MaxInt32), 1))
}
