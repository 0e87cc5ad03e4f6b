//go:build unix

package openfiles

import (
	"golang.org/x/sys/unix"
)

// Limit returns the most files that the process may have open; it is not known
// if ok is false. Go raises the soft limit to the hard one when it starts.
func Limit() (limit uint64, ok bool) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 0, false
	}
	return uint64(r.Cur), true //nolint:unconvert // its type differs among systems
}
