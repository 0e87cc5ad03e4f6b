package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// ReadOnlyFS is the file system for reading a store. Pebble locks a store even
// when it only reads; that lock does nothing here, because the caller holds the
// lock of the data dir, or cannot take one.
type ReadOnlyFS struct{ vfs.FS }

type noLock struct{}

func (noLock) Close() error { return nil }

func (ReadOnlyFS) Lock(string) (io.Closer, error) { return noLock{}, nil }

// LockReadOnly locks a data dir for reading, without writing to it. A data dir
// without LOCK was never opened; one without write permission is locked with a
// shared lock, if possible.
func LockReadOnly(fs vfs.FS, dir string) (io.Closer, error) {
	if err := poisoned(fs, dir); err != nil {
		return nil, err
	}
	path := fs.PathJoin(dir, LockFile)
	if !storefs.Exists(fs, path) {
		return noLock{}, nil
	}
	lock, err := fs.Lock(path)
	if err == nil {
		return lock, nil
	}
	if !errors.Is(err, os.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return nil, inUse(fs, dir)
	}
	if fs != vfs.Default {
		return noLock{}, nil
	}
	shared, busy := ShareLock(path)
	if busy {
		return nil, inUse(fs, dir)
	}
	return shared, nil
}

// Check returns an error if dir is not a data dir; a damaged data dir is accepted.
func Check(fs vfs.FS, dir string) error {
	if err := MayRead(fs, dir); err != nil {
		return err
	}
	info, err := fs.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("data folder %s: %w", dir, err)
	case !info.IsDir():
		return fmt.Errorf("%s is a file; a data folder is wanted", dir)
	case !storefs.Exists(fs, fs.PathJoin(dir, FormatFile)) && !storefs.Exists(fs, fs.PathJoin(dir, StoreDir)):
		return fmt.Errorf("%s is not a data folder: it has neither %s nor %s", dir, FormatFile, StoreDir)
	}
	return nil
}

// MayRead returns an error if this user has no permission to read a folder's files:
// the folder would look empty.
func MayRead(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(fs.PathJoin(dir, FormatFile)); errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("data folder %s: %w; run this as the user that the hub runs as", dir, err)
	}
	return nil
}
