//go:build !unix

package datadir

import "io"

// ShareLock takes no lock where there are none for readers.
func ShareLock(string) (lock io.Closer, busy bool) { return noLock{}, false }
