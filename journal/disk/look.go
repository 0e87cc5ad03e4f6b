package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lookFS is a file system through which a folder is only looked at. Pebble
// locks a store that it only reads; whoever looks has the folder's own lock, or
// none is to be had.
type lookFS struct{ vfs.FS }

type noLock struct{}

func (noLock) Close() error { return nil }

func (lookFS) Lock(string) (io.Closer, error) { return noLock{}, nil }

// look takes a folder to read it, without writing to it. A folder without LOCK
// was never opened, and one that may not be written to is locked as far as
// reading allows.
func look(fs vfs.FS, dir string) (io.Closer, error) {
	if err := poisoned(fs, dir); err != nil {
		return nil, err
	}
	path := fs.PathJoin(dir, lockFile)
	if !exists(fs, path) {
		return noLock{}, nil
	}
	lock, err := fs.Lock(path)
	if err == nil {
		return lock, nil
	}
	if !os.IsPermission(err) && !errors.Is(err, syscall.EROFS) {
		return nil, inUse(fs, dir)
	}
	if fs != vfs.Default {
		return noLock{}, nil
	}
	shared, busy := shareLock(path)
	if busy {
		return nil, inUse(fs, dir)
	}
	return shared, nil
}

// isFolder tells a folder that is damaged from one that is none.
func isFolder(fs vfs.FS, dir string) error {
	info, err := fs.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("data folder %s: %w", dir, err)
	case !info.IsDir():
		return fmt.Errorf("%s is a file; a data folder is wanted", dir)
	case !exists(fs, fs.PathJoin(dir, formatFile)) && !exists(fs, fs.PathJoin(dir, storeDir)):
		return fmt.Errorf("%s is no data folder: it has neither %s nor %s", dir, formatFile, storeDir)
	}
	return nil
}
