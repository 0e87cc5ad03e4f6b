package journalbench

import (
	"os"

	"golang.org/x/sys/unix"
)

func preallocate(f *os.File, at, size int64) error { return unix.Fallocate(int(f.Fd()), 0, at, size) }

func syncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// syncDisk syncs the whole file system that a folder is on.
func syncDisk(folder *os.File) error { return unix.Syncfs(int(folder.Fd())) }
