package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/journal"
)

// failedTimeout bounds each step of ending once there is no time left, or the engine
// has failed: a disk that hangs must not keep the process alive.
const failedTimeout = time.Second

// ending closes the parts of a hub within shutdown.timeout, counted from the signal to
// stop. A part that does not close in time, such as a hub whose adapter does not
// return, is abandoned: acknowledged data is on disk, and the next start treats the
// rest as a crash.
type ending struct {
	engine  journal.Engine
	timeout time.Duration
	began   atomic.Pointer[time.Time]
}

// watch records when ctx ends. The function that it returns ends the watch.
func (e *ending) watch(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		now := time.Now()
		e.began.CompareAndSwap(nil, &now)
	})
}

// limit returns how long the next part may take, at least failedTimeout.
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

// closing closes one part, and abandons it when its time is over.
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
