package turns

import (
	"context"
	"slices"
	"time"

	"github.com/parley-hub/parley/fault"
)

// Turn is one request or stream that takes turns with others of its principal.
// It is used by one goroutine. A nil turn never waits, and its work is not
// counted.
type Turn struct {
	gate *Gate
	who  string

	// Under the gate's lock.
	has  bool
	wake chan struct{} // closed when it has the turn; nil: it does not wait
}

// Take asks for the turn. It returns nil if the caller has it, and otherwise a
// channel that is closed when it has; Leave must be called if it does not wait
// for it.
func (t *Turn) Take() <-chan struct{} {
	if t == nil {
		return nil
	}
	g := t.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.has {
		return nil
	}
	if t.wake != nil {
		return t.wake
	}
	q := g.queue(t.who)
	if t.try(q) {
		return nil
	}
	wake := make(chan struct{})
	t.wake = wake
	q.waiting = append(q.waiting, t)
	g.next(q)
	return wake
}

// Try takes the turn if nobody has it and nobody waits.
func (t *Turn) Try() bool {
	if t == nil {
		return true
	}
	g := t.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	return t.has || t.wake == nil && t.try(g.queue(t.who))
}

func (t *Turn) try(q *queue) bool {
	if q.busy || len(q.waiting) > 0 || t.gate.wait(q) > 0 {
		return false
	}
	t.has, q.busy = true, true
	return true
}

// Wait takes the turn, and refuses if that lasts longer than most.
func (t *Turn) Wait(ctx context.Context, most time.Duration) error {
	wake := t.Take()
	if wake == nil {
		return nil
	}
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-wake:
		return nil
	case <-late.C:
		t.Leave()
		err := fault.New(fault.RateLimited, "logs are read at %d bytes a second for you and %d for all together (limits.reads), and you have waited %s for your turn; read less, or try again later",
			int(t.gate.rate/shares), int(t.gate.rate), most)
		err.RetryAfter = time.Second
		return err
	case <-ctx.Done():
		t.Leave()
		return ctx.Err()
	}
}

// Done ends the turn and counts what was done. Without the turn it does nothing.
func (t *Turn) Done(bytes int) {
	if t == nil {
		return
	}
	g := t.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	t.done(bytes)
}

func (t *Turn) done(bytes int) {
	if !t.has {
		return
	}
	g := t.gate
	q := g.queue(t.who)
	g.wait(q) // time does not run backwards
	q.bytes += float64(bytes)
	g.all.bytes += min(float64(bytes), g.rate/shares) // one large piece must not block everybody
	t.has, q.busy = false, false
	g.next(q)
}

// Leave gives up the turn, or the place in the queue.
func (t *Turn) Leave() {
	if t == nil {
		return
	}
	g := t.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	t.done(0)
	if t.wake != nil {
		t.wake = nil
		q := g.queue(t.who)
		q.waiting = slices.DeleteFunc(q.waiting, func(other *Turn) bool { return other == t })
	}
}
