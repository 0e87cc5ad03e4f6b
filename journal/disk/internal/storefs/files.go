package storefs

import (
	"bytes"
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ReadFile reads a whole file.
func ReadFile(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b := make([]byte, info.Size())
	n, err := io.ReadFull(f, b)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // it is shorter now
	}
	return b[:n], errors.Join(err, f.Close())
}

// SyncDir makes the names in a folder durable.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// WriteFile writes a file atomically: after a crash the file is complete or does not
// exist.
func WriteFile(fs vfs.FS, dir, name string, data []byte) error {
	temp := fs.PathJoin(dir, name+".new")
	f, err := fs.Create(temp, "journal-guard")
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Clone(data))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(temp, fs.PathJoin(dir, name)); err != nil {
		return err
	}
	return SyncDir(fs, dir)
}

// Exists reports whether a file or folder exists.
func Exists(fs vfs.FS, path string) bool {
	_, err := fs.Stat(path)
	return err == nil
}

// MakeDir makes a folder and its parents durably.
func MakeDir(fs vfs.FS, dir string) error {
	if Exists(fs, dir) {
		return nil
	}
	parent := fs.PathDir(dir)
	if parent != dir {
		if err := MakeDir(fs, parent); err != nil {
			return err
		}
	}
	if err := fs.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return SyncDir(fs, parent)
}
