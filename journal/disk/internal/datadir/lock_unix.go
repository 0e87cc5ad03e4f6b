//go:build unix

package datadir

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ShareLock locks out writers while a folder without write permission is read. If
// the lock file cannot be opened for reading, it takes no lock.
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
