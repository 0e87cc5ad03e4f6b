package storefs

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// OpenGuard receives the first error of work that uses Pebble while no engine handles
// Pebble's errors. Pebble would react to a disk error by ending the process or the
// calling goroutine, or by retrying forever. The guard's file system therefore
// withholds the error from Pebble: the operation never returns, and Failed reports the
// failure.
type OpenGuard struct {
	patience time.Duration // for one disk operation
	failed   chan struct{} // closed after err was set
	released atomic.Bool   // the work is done; from here an engine handles errors

	mu  sync.Mutex
	err error
}

// NewOpenGuard returns the guard of one piece of work. A disk operation that takes
// longer than patience is an error.
func NewOpenGuard(patience time.Duration) *OpenGuard {
	return &OpenGuard{patience: patience, failed: make(chan struct{})}
}

// Failed returns a channel that is closed when the work has failed; Err then returns
// the cause.
func (g *OpenGuard) Failed() <-chan struct{} { return g.failed }

// Err returns the first error.
func (g *OpenGuard) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// FS returns the file system for Pebble. A nil guard returns fs itself.
func (g *OpenGuard) FS(fs vfs.FS) vfs.FS {
	if g == nil {
		return fs
	}
	return guardedFS{fs, g}
}

// Fail ends the work with an error; the first error counts. It reports whether the
// work was still running.
func (g *OpenGuard) Fail(err error) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.released.Load() {
		return false
	}
	if g.err == nil {
		g.err = err
		close(g.failed)
	}
	return true
}

// Release ends the work, unless it has failed, and reports whether it did: from then
// on the guard passes everything through.
func (g *OpenGuard) Release() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.released.Store(true)
	}
	return g.err == nil
}

func (g *OpenGuard) stopped() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err != nil
}

// run does one disk operation. After a failure it never returns.
func (g *OpenGuard) run(what, name string, op func() error) error {
	if g.released.Load() {
		return op()
	}
	if g.stopped() {
		select {}
	}
	timer := time.AfterFunc(g.patience, func() {
		g.Fail(fmt.Errorf("%s %s has taken more than %v", what, name, g.patience))
	})
	err := op()
	timer.Stop()
	ill := err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrExist)
	if (ill && g.Fail(fmt.Errorf("%s %s: %w", what, name, err))) || g.stopped() {
		select {}
	}
	return err
}

// guardedFS is the file system of guarded work. Reads, and removals of files that are
// no longer used, may fail without harm.
type guardedFS struct {
	vfs.FS
	guard *OpenGuard
}

func (o guardedFS) file(what, name string, open func() (vfs.File, error)) (file vfs.File, err error) {
	err = o.guard.run(what, o.PathBase(name), func() error {
		file, err = open()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &guardedFile{File: file, guard: o.guard, name: o.PathBase(name)}, nil
}

func (o guardedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return o.file("creating", name, func() (vfs.File, error) { return o.FS.Create(name, c) })
}

func (o guardedFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return o.file("creating", name, func() (vfs.File, error) { return o.FS.ReuseForWrite(old, name, c) })
}

func (o guardedFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return o.file("opening", name, func() (vfs.File, error) { return o.FS.OpenReadWrite(name, c, opts...) })
}

func (o guardedFS) OpenDir(name string) (vfs.File, error) {
	return o.file("opening", name, func() (vfs.File, error) { return o.FS.OpenDir(name) })
}

func (o guardedFS) Rename(from, to string) error {
	return o.guard.run("renaming to", o.PathBase(to), func() error { return o.FS.Rename(from, to) })
}

func (o guardedFS) MkdirAll(name string, mode os.FileMode) error {
	return o.guard.run("making", o.PathBase(name), func() error { return o.FS.MkdirAll(name, mode) })
}

// guardedFile is a file or folder that guarded work opened. It may outlive the work.
type guardedFile struct {
	vfs.File
	guard *OpenGuard
	name  string
}

func (f *guardedFile) Write(b []byte) (n int, err error) {
	err = f.guard.run("writing", f.name, func() error {
		n, err = f.File.Write(b)
		return err
	})
	return n, err
}

func (f *guardedFile) WriteAt(b []byte, at int64) (n int, err error) {
	err = f.guard.run("writing", f.name, func() error {
		n, err = f.File.WriteAt(b, at)
		return err
	})
	return n, err
}

func (f *guardedFile) SyncTo(length int64) (full bool, err error) {
	err = f.guard.run("syncing", f.name, func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

func (f *guardedFile) Sync() error     { return f.guard.run("syncing", f.name, f.File.Sync) }
func (f *guardedFile) SyncData() error { return f.guard.run("syncing", f.name, f.File.SyncData) }
func (f *guardedFile) Close() error    { return f.guard.run("closing", f.name, f.File.Close) }
