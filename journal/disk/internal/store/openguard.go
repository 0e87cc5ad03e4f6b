package store

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// Guarded runs work that uses Pebble while no engine handles Pebble's errors. The
// work runs in its own goroutine with an OpenGuard. After a disk error the goroutine
// stays blocked, Guarded returns the error at once, and this process does not open
// the data dir again.
func Guarded[T any](dir string, opts Options, work func(Options) (T, error)) (T, error) {
	var none T
	if err := enoughRoom(dir, opts); err != nil {
		return none, err
	}
	guard := storefs.NewOpenGuard(opts.SyncLimit)
	opts.Guard = guard
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
				guard.Fail(fmt.Errorf("the store panicked: %v", p))
			} else {
				guard.Fail(errors.New("the store ended its goroutine without an error"))
			}
		}()
		value, err := work(opts)
		ended = true
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		if guard.Release() {
			return r.value, r.err
		}
	case <-guard.Failed():
	}
	datadir.Poison(opts.FS, dir, guard.Err())
	return none, &LeftBehindError{guard.Err()}
}

// LeftBehindError is an error after which a call of Pebble was left blocked.
type LeftBehindError struct{ cause error }

func (e *LeftBehindError) Error() string { return e.cause.Error() }

func (e *LeftBehindError) Unwrap() []error { return []error{journal.ErrFailed, e.cause} }

// enoughRoom returns an error if the disk of a folder is nearly full: Pebble writes
// when it opens a store, and more when it closes it.
func enoughRoom(dir string, opts Options) error {
	if opts.MinFree < 0 {
		return nil
	}
	at := dir // or its nearest parent that exists
	for up := opts.FS.PathDir(at); !storefs.Exists(opts.FS, at) && up != at; up = opts.FS.PathDir(at) {
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
