package disk

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// identityInterval is how often the committer looks whether the files are still
// the ones that were opened, while batches become durable.
const identityInterval = 100 * time.Millisecond

// identity tells a file from another that has its name now. It is empty where a
// file system has no such thing; then only a missing file is noticed.
type identity struct{ device, inode uint64 }

// openedFile is a file or folder as it was opened.
type openedFile struct {
	path string
	id   identity
}

// openedFiles are the files of a store that must stay where they are: writing
// goes on into files that were removed, and nothing of it would be found again.
type openedFiles struct {
	fs    vfs.FS
	fixed []openedFile // set when the store is opened

	mu  sync.Mutex
	log openedFile // the write-ahead log that is written now
}

// begin remembers the files that stay for as long as the store is open.
func (o *openedFiles) begin(fs vfs.FS, paths ...string) error {
	o.fs, o.fixed = fs, nil
	for _, path := range paths {
		info, err := fs.Stat(path)
		if err != nil {
			return err
		}
		o.fixed = append(o.fixed, openedFile{path, identityOf(info)})
	}
	return nil
}

// turnTo remembers the log that is written from now on.
func (o *openedFiles) turnTo(path string, f vfs.File) {
	now := openedFile{path: path}
	if info, err := f.Stat(); err == nil {
		now.id = identityOf(info)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log = now
}

func (o *openedFiles) current() openedFile {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log
}

// check returns an error when a file is not the one that was opened.
func (o *openedFiles) check() error {
	for _, f := range o.fixed {
		if err := o.checkFile(f); err != nil {
			return err
		}
	}
	for {
		log := o.current()
		if log.path == "" {
			return nil
		}
		err := o.checkFile(log)
		if err == nil || o.current() == log {
			return err
		}
		// Pebble began another log meanwhile and put the old one away.
	}
}

func (o *openedFiles) checkFile(f openedFile) error {
	info, err := o.fs.Stat(f.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s was removed while it was in use; stop the process and restore the data folder from a backup", f.path)
	case err != nil:
		return nil // a disk that is ill tells so when it is written to
	case identityOf(info) != f.id:
		return fmt.Errorf("%s was replaced while it was in use; stop the process and look which data folder is the right one", f.path)
	}
	return nil
}

// replaced reports, before a group is acknowledged, whether files of the store
// are gone: when Pebble has begun a log, and every now and then.
func (e *Engine) replaced() error {
	now := time.Now()
	log := e.opened.current()
	if log == e.checkedLog && now.Sub(e.checkedAt) < e.opts.checkEvery {
		return nil
	}
	e.checkedLog, e.checkedAt = log, now
	return e.opened.check()
}
