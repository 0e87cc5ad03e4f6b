package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/journal"
)

// failedTimeout bounds each step of ending once there is no time left, or the
// engine has failed: a disk that hangs must not keep the process, which alone
// can let go of it.
const failedTimeout = time.Second

// ending closes the parts of a hub within shutdown.timeout, counted from the
// moment the hub was told to stop. A part that does not close in time, such as
// a hub whose adapter does not return, is given up: what was acknowledged is on
// disk already, and the next start treats the rest as a crash.
type ending struct {
	engine  journal.Engine
	timeout time.Duration
	began   atomic.Pointer[time.Time]
}

// watch notes when ctx ends. The function that it returns ends the watch.
func (e *ending) watch(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		now := time.Now()
		e.began.CompareAndSwap(nil, &now)
	})
}

// limit is how long the next part may take. Every part has at least
// failedTimeout, also after the others have used up the time.
func (e *ending) limit() time.Duration {
	if e.engine.Health().State == journal.Broken {
		return failedTimeout
	}
	left := e.timeout
	if began := e.began.Load(); began != nil {
		left -= time.Since(*began)
	}
	return max(left, failedTimeout)
}

// closing closes one part, and gives up on it in time.
func (e *ending) closing(what string, fn func() error) error {
	closed := make(chan error, 1)
	go func() { closed <- fn() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(e.limit()):
		return fmt.Errorf("%s did not close in time and is left to the next start", what)
	}
}
