package storefs

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// identity distinguishes a file from another file with the same name. It is empty if
// the file system has no identities; then only a missing file is noticed.
type identity struct{ device, inode uint64 }

// File is a file or folder as it was opened.
type File struct {
	path string
	id   identity
}

// Opened are the files of a store that must not be moved or removed: writes to a
// removed file succeed, and would be lost.
type Opened struct {
	fs    vfs.FS
	fixed []File // set when the store is opened

	mu  sync.Mutex
	log File // the write-ahead log that is written now
}

// Begin records the files that must stay as long as the store is open.
func (o *Opened) Begin(fs vfs.FS, paths ...string) error {
	o.fs, o.fixed = fs, nil
	for _, path := range paths {
		info, err := fs.Stat(path)
		if err != nil {
			return err
		}
		o.fixed = append(o.fixed, File{path, identityOf(info)})
	}
	return nil
}

// TurnTo records the log that is written from now on.
func (o *Opened) TurnTo(path string, f vfs.File) {
	now := File{path: path}
	if info, err := f.Stat(); err == nil {
		now.id = identityOf(info)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log = now
}

// Current returns the log that is written now.
func (o *Opened) Current() File {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log
}

// Check returns an error if a file is not the one that was opened.
func (o *Opened) Check() error {
	for _, f := range o.fixed {
		if err := o.checkFile(f); err != nil {
			return err
		}
	}
	for {
		log := o.Current()
		if log.path == "" {
			return nil
		}
		err := o.checkFile(log)
		if err == nil || o.Current() == log {
			return err
		}
		// Pebble began another log meanwhile and removed the old one.
	}
}

func (o *Opened) checkFile(f File) error {
	info, err := o.fs.Stat(f.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s was removed while it was in use; stop the process and restore the data folder from a backup", f.path)
	case err != nil:
		return nil // if the disk fails, the next write returns the error
	case identityOf(info) != f.id:
		return fmt.Errorf("%s was replaced while it was in use; stop the process and look which data folder is the right one", f.path)
	}
	return nil
}
