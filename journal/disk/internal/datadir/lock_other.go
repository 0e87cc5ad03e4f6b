//go:build !unix

package datadir

import "io"

// ShareLock takes no lock: this system has no shared locks.
func ShareLock(string) (lock io.Closer, busy bool) { return noLock{}, false }
