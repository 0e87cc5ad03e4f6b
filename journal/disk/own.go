package disk

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
)

// onItsOwn runs work that uses Pebble before an engine, or instead of one, looks
// after it. Pebble answers an error of its disk there by ending the process or
// the goroutine that called it, or by trying for ever. So the work has a
// goroutine of its own, and the file system that its options give to Pebble
// keeps the first error from Pebble: the work stays where it is, the error is
// returned at once, and the folder is not opened in this process again.
func onItsOwn[T any](dir string, opts Options, work func(Options) (T, error)) (T, error) {
	var none T
	if err := enoughRoom(dir, opts); err != nil {
		return none, err
	}
	w := &ownWork{told: make(chan struct{}), patience: opts.SyncLimit}
	opts.own = w
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		ended := false
		defer func() {
			if ended {
				return
			}
			if p := recover(); p != nil {
				opts.Logger.Error("the store panicked", "panic", p, "stack", string(debug.Stack()))
				w.tell(fmt.Errorf("the store panicked: %v", p))
			} else {
				w.tell(errors.New("the store gave up"))
			}
		}()
		value, err := work(opts)
		ended = true
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		if w.release() {
			return r.value, r.err
		}
	case <-w.told:
	}
	poison(opts.FS, dir, w.trouble)
	return none, &leftBehindError{w.trouble}
}

// leftBehindError is an error after which Pebble was left in the middle of
// something.
type leftBehindError struct{ cause error }

func (e *leftBehindError) Error() string { return e.cause.Error() }

func (e *leftBehindError) Unwrap() []error { return []error{journal.ErrFailed, e.cause} }

// enoughRoom refuses a folder whose disk is all but full: Pebble writes when it
// opens a store, and more when it closes it.
func enoughRoom(dir string, opts Options) error {
	if opts.MinFree < 0 {
		return nil
	}
	at := dir // or the nearest folder above it that there is
	for up := opts.FS.PathDir(at); !exists(opts.FS, at) && up != at; up = opts.FS.PathDir(at) {
		at = up
	}
	usage, err := opts.FS.GetDiskUsage(at)
	if err != nil {
		return nil //nolint:nilerr // a file system that cannot tell is taken to have room
	}
	if free := int64(min(usage.AvailBytes, 1<<62)); free < opts.MinFree/4 {
		return fmt.Errorf("%w: %d MiB are free on the disk of %s, at least %d MiB are needed to open it",
			journal.ErrNoSpace, free>>20, dir, opts.MinFree/4>>20)
	}
	return nil
}

// ownWork is the trouble of one piece of work.
type ownWork struct {
	patience time.Duration // for one operation of the disk
	told     chan struct{} // closed after trouble was set
	released atomic.Bool   // the work is done; from here an engine looks after the store

	mu      sync.Mutex
	trouble error
}

// tell ends the work with an error; the first counts. It reports whether there
// still was work to end.
func (w *ownWork) tell(err error) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.released.Load() {
		return false
	}
	if w.trouble == nil {
		w.trouble = err
		close(w.told)
	}
	return true
}

// release ends the work if nothing has been told.
func (w *ownWork) release() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble == nil {
		w.released.Store(true)
	}
	return w.trouble == nil
}

func (w *ownWork) stopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trouble != nil
}

// run does one operation of the disk. After trouble it never returns.
func (w *ownWork) run(what, name string, op func() error) error {
	if w.released.Load() {
		return op()
	}
	if w.stopped() {
		select {}
	}
	timer := time.AfterFunc(w.patience, func() {
		w.tell(fmt.Errorf("%s %s has taken over %v", what, name, w.patience))
	})
	err := op()
	timer.Stop()
	ill := err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrExist)
	if (ill && w.tell(fmt.Errorf("%s %s: %w", what, name, err))) || w.stopped() {
		select {}
	}
	return err
}

// ownFS is the file system of such work. What Pebble reads, and what it removes
// after it is of no use, may fail without harm.
type ownFS struct {
	vfs.FS
	own *ownWork
}

func (o ownFS) file(what, name string, open func() (vfs.File, error)) (file vfs.File, err error) {
	err = o.own.run(what, o.PathBase(name), func() error {
		file, err = open()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &ownFile{File: file, own: o.own, name: o.PathBase(name)}, nil
}

func (o ownFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return o.file("creating", name, func() (vfs.File, error) { return o.FS.Create(name, c) })
}

func (o ownFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return o.file("creating", name, func() (vfs.File, error) { return o.FS.ReuseForWrite(old, name, c) })
}

func (o ownFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return o.file("opening", name, func() (vfs.File, error) { return o.FS.OpenReadWrite(name, c, opts...) })
}

func (o ownFS) OpenDir(name string) (vfs.File, error) {
	return o.file("opening", name, func() (vfs.File, error) { return o.FS.OpenDir(name) })
}

func (o ownFS) Rename(from, to string) error {
	return o.own.run("renaming to", o.PathBase(to), func() error { return o.FS.Rename(from, to) })
}

func (o ownFS) MkdirAll(name string, mode os.FileMode) error {
	return o.own.run("making", o.PathBase(name), func() error { return o.FS.MkdirAll(name, mode) })
}

// ownFile is a file or folder that such work opened. It may outlive the work.
type ownFile struct {
	vfs.File
	own  *ownWork
	name string
}

func (f *ownFile) Write(b []byte) (n int, err error) {
	err = f.own.run("writing", f.name, func() error {
		n, err = f.File.Write(b)
		return err
	})
	return n, err
}

func (f *ownFile) WriteAt(b []byte, at int64) (n int, err error) {
	err = f.own.run("writing", f.name, func() error {
		n, err = f.File.WriteAt(b, at)
		return err
	})
	return n, err
}

func (f *ownFile) SyncTo(length int64) (full bool, err error) {
	err = f.own.run("syncing", f.name, func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

func (f *ownFile) Sync() error     { return f.own.run("syncing", f.name, f.File.Sync) }
func (f *ownFile) SyncData() error { return f.own.run("syncing", f.name, f.File.SyncData) }
func (f *ownFile) Close() error    { return f.own.run("closing", f.name, f.File.Close) }
