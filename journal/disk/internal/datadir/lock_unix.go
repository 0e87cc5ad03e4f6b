//go:build unix

package datadir

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ShareLock keeps writers away while a folder is read that may not be written
// to. A lock that may not even be read is not taken.
func ShareLock(path string) (lock io.Closer, busy bool) {
	f, err := os.Open(path) //nolint:gosec // a file of the folder that was named
	if err != nil {
		return noLock{}, false
	}
	spec := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart}
	switch err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &spec); err {
	case nil:
		return f, false
	case unix.EAGAIN, unix.EACCES:
		_ = f.Close()
		return nil, true
	default: // a file system without locks
		_ = f.Close()
		return noLock{}, false
	}
}
