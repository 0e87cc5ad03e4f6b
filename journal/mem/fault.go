package mem

import (
	"errors"
	"sync"
)

var (
	errCrashed  = errors.New("mem: crashed")
	errInjected = errors.New("mem: injected fault")
)

// Faults hold or fail operations of an engine. All methods may be called at any
// time.
type Faults struct {
	mu        sync.Mutex
	held      *hold // nil when nothing holds the sync
	failWrite bool
	failSync  bool
	crashed   chan struct{}
	crashOnce sync.Once
}

func (f *Faults) init() { f.crashed = make(chan struct{}) }

type hold struct {
	reached, released chan struct{}
}

// HoldSync keeps the next sync, and all after it, from ending until release is
// called. The channel is closed when a sync has begun and is held.
func (f *Faults) HoldSync() (reached <-chan struct{}, release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := &hold{reached: make(chan struct{}), released: make(chan struct{})}
	f.held = h
	return h.reached, sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		close(h.released)
		if f.held == h {
			f.held = nil
		}
	})
}

// FailWrite makes the next group fail before it reaches the store.
func (f *Faults) FailWrite() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failWrite = true
}

// FailSync makes the next sync fail; the group that it was to make durable is there
// after the next open.
func (f *Faults) FailSync() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failSync = true
}

// Crash ends the engine as a power loss would: what was not synced is lost.
// Close must still be called, to wait for the engine's goroutine.
func (f *Faults) Crash() { f.crashOnce.Do(func() { close(f.crashed) }) }

func (f *Faults) writing() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failWrite {
		f.failWrite = false
		return errInjected
	}
	return nil
}

// reach closes reached. Only the committer calls it.
func (h *hold) reach() {
	select {
	case <-h.reached:
	default:
		close(h.reached)
	}
}

func (f *Faults) syncing() error {
	for {
		f.mu.Lock()
		held, fail := f.held, f.failSync
		if held == nil {
			f.failSync = false
		}
		f.mu.Unlock()
		select {
		case <-f.crashed:
			return errCrashed
		default:
		}
		if held == nil {
			if fail {
				return errInjected
			}
			return nil
		}
		held.reach()
		select {
		case <-held.released:
		case <-f.crashed:
			return errCrashed
		}
	}
}
