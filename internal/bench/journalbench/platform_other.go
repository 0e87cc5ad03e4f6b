//go:build !linux

package journalbench

import "os"

func preallocate(f *os.File, at, size int64) error { return f.Truncate(at + size) }

func syncData(f *os.File) error { return f.Sync() }

// syncDisk does nothing on this system; the first figure after a copy may pay for it.
func syncDisk(*os.File) error { return nil }
