// Package loop runs functions at intervals in the background, and waits between
// attempts. A Group owns its goroutines: closing it ends them and waits for them.
package loop

import (
	"context"
	"sync"
	"time"
)

// Group is a set of loops. Use New: the zero value does not work.
type Group struct {
	ctx    context.Context
	cancel context.CancelFunc
	call   func(run func())

	mu     sync.Mutex
	closed bool
	named  map[string]context.CancelFunc
	done   sync.WaitGroup
}

// New returns a group whose loops end with the context. Each run goes through
// call, which may recover from a panic; nil calls it directly.
func New(ctx context.Context, call func(run func())) *Group {
	if call == nil {
		call = func(run func()) { run() }
	}
	ctx, cancel := context.WithCancel(ctx)
	return &Group{ctx: ctx, cancel: cancel, call: call, named: map[string]context.CancelFunc{}}
}

// Start calls run at an interval, first after one interval, until the group is
// closed. An interval of zero or less, or a closed group, starts nothing.
func (g *Group) Start(every time.Duration, run func(context.Context)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if every > 0 && !g.closed {
		g.done.Go(func() { g.loop(g.ctx, every, run) })
	}
}

// Result says what StartNamed did.
type Result int

// Results of StartNamed.
const (
	Started Result = iota
	Taken          // a loop of that name runs already
	Closed         // the group is closed
)

// StartNamed is like Start, for a loop that Stop can end. The interval is positive.
func (g *Group) StartNamed(name string, every time.Duration, run func(context.Context)) Result {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return Closed
	}
	if _, taken := g.named[name]; taken {
		return Taken
	}
	ctx, stop := context.WithCancel(g.ctx)
	g.named[name] = stop
	g.done.Go(func() { g.loop(ctx, every, run) })
	return Started
}

// Stop ends a named loop and reports whether there was one. A run that is under
// way sees its context end.
func (g *Group) Stop(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	stop, ok := g.named[name]
	if ok {
		stop()
		delete(g.named, name)
	}
	return ok
}

// Close ends every loop and waits for them. Closing again does nothing.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	g.done.Wait()
}

func (g *Group) loop(ctx context.Context, every time.Duration, run func(context.Context)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if ctx.Err() != nil { // both came during a long run
				return
			}
			g.call(func() { run(ctx) })
		}
	}
}

// Pause waits for a duration, and returns the error of ctx if that ends first.
func Pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
