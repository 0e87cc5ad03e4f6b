package disk

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// betweenGroups runs fn on the committer, when nothing is in flight; if idle is
// set, also nothing is gathered. It stops waiting for fn when ctx ends or the engine
// fails: fn may then still run, and left is called after it. begun reports whether
// fn has begun.
func (e *Engine) betweenGroups(ctx context.Context, idle bool, fn func() error, left func()) (begun bool, err error) {
	for {
		t := &task{result: make(chan error, 1)}
		run := func(refused error) {
			if refused == nil {
				refused = e.taskRefusal(ctx, idle)
			}
			if refused != nil {
				t.end(refused)
				return
			}
			if !t.state.CompareAndSwap(taskWaits, taskRuns) {
				return
			}
			t.begun.Store(true)
			e.tasked.Store(time.Now().UnixNano())
			err := fn()
			e.tasked.Store(0)
			if !t.end(err) {
				left()
			}
		}
		select {
		case e.tasks <- run:
		case <-e.failed:
			return false, e.refused()
		case <-e.done:
			return false, e.refused()
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
		select {
		case err = <-t.result:
		case <-e.failed:
			begun, err = t.leave(e.refused())
		case <-e.done:
			begun, err = t.leave(e.refused())
		case <-ctx.Done():
			begun, err = t.leave(context.Cause(ctx))
		}
		if !errors.Is(err, errBusy) {
			return begun || t.begun.Load(), err
		}
	}
}

var errBusy = errors.New("a group has been gathered")

// taskRefusal returns why the committer cannot run a task now, or nil.
func (e *Engine) taskRefusal(ctx context.Context, idle bool) error {
	e.mu.Lock()
	busy, err := idle && !e.group.empty(), e.ended()
	e.mu.Unlock()
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case busy:
		signal(e.wake)
		return errBusy
	case !e.crowded():
		return nil
	}
	if err := e.refused(); err != nil {
		return err
	}
	return errBusy // there is room again
}

// task is shared by the committer that runs it and the caller that waits for it.
type task struct {
	state  atomic.Int32
	begun  atomic.Bool // final when there is a result
	result chan error
}

const (
	taskWaits = iota
	taskRuns
	taskOver // it has a result, or its caller no longer waits
)

// end delivers the result, and reports whether the caller still waited for it.
func (t *task) end(err error) bool {
	if t.state.Swap(taskOver) == taskOver {
		return false
	}
	t.result <- err
	return true
}

// leave stops waiting and returns cause, or the result if there is one.
func (t *task) leave(cause error) (begun bool, err error) {
	switch t.state.Swap(taskOver) {
	case taskWaits:
		return false, cause
	case taskRuns:
		return true, cause
	}
	return false, <-t.result
}
