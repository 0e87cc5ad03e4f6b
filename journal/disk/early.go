package disk

import (
	"context"
	"runtime"
	"time"

	"github.com/parley-hub/parley/journal"
)

// A group of a copy is durable when the log has it. Its tickets end then, before the
// group is applied here, so that its writers can fill the next group. The group is
// applied while the next one is being shipped, or at once when no group follows or
// a read waits. Reads wait until the group is applied, so that a caller reads every
// batch whose ticket ended durable.

// behind is a group that is durable and not applied yet.
type behind struct {
	group  *group
	at     Place
	before int64 // batches that were gathered when its tickets ended
}

// ship writes a group to the log that the store is a copy of, and meanwhile applies
// the group before it. When the log has the group, its tickets end. ship reports
// whether the engine goes on.
func (e *Engine) ship(g *group, synced bool) bool {
	e.since.Store(0) // waiting for the log is not a failure of the disk
	shipped := Group{Hints: g.hints, Batch: g.batch.Repr()}
	if g.last > 0 {
		shipped.First, shipped.Count = g.last-g.batches+1, g.batches
	}
	settled := e.settleBeside()
	began := time.Now()
	at, outcome, cause := e.copy.ship(shipped)
	took := time.Since(began)
	if !settled() {
		return false
	}
	if outcome != journal.Durable {
		e.follow(cause)
		e.forget(g, outcome, cause)
		return true
	}
	e.copy.at = at
	e.copy.behind = &behind{group: g, at: at, before: e.gathered.Load()}
	e.endEarly(g, synced, took)
	if g.saves || len(g.drops)+len(g.finished) > 0 {
		return e.settle() // such groups are rare, and other work waits for them
	}
	return true
}

// endEarly ends the tickets of a group that is durable and not applied yet.
func (e *Engine) endEarly(g *group, synced bool, took time.Duration) {
	e.mu.Lock()
	if e.failure != nil { // its tickets have ended
		e.mu.Unlock()
		return
	}
	e.flight, e.unseen = nil, make(chan struct{})
	e.copy.wanted.Store(false)
	e.count(g, synced, took)
	e.wakeAppends()
	e.mu.Unlock()
	g.fate.End(journal.Durable, nil)
}

// settle applies the group that is durable and not applied yet, if there is one, and
// lets readers see it. It reports whether the engine goes on.
func (e *Engine) settle() bool {
	if e.copy == nil || e.copy.behind == nil {
		return true
	}
	b := e.copy.behind
	e.copy.behind = nil
	return e.apply(b)
}

// settleBeside starts settle in the background; settled waits for it and returns
// its result.
func (e *Engine) settleBeside() (settled func() bool) {
	b := e.copy.behind
	if b == nil {
		return func() bool { return true }
	}
	e.copy.behind = nil
	done := make(chan bool, 1)
	go func() { done <- e.apply(b) }()
	return func() bool { return <-done }
}

func (e *Engine) apply(b *behind) bool {
	e.since.Store(time.Now().UnixNano())
	err := e.writeAt(b.group.batch, b.at)
	if err == nil {
		err = e.replaced()
	}
	if err != nil {
		e.fail(err)
		return false
	}
	return e.publish(b.group, false, 0)
}

// refillTime is how long the committer waits for the writers of a group that has just
// become durable, and refillQuiet how long for the next of them. Shipping a group takes
// much longer, and a writer that misses this group waits for two.
const (
	refillTime  = 500 * time.Microsecond
	refillQuiet = 50 * time.Microsecond
)

// refill is fill for a group that is durable and not applied yet: it waits for the
// group's writers, in addition to the batches already gathered, as long as they keep
// arriving. If a read waits meanwhile, refill applies the group.
func (e *Engine) refill() {
	b := e.copy.behind
	if e.missed++; e.missed > fillMisses && e.missed%fillProbe != 0 {
		if e.gathered.Load() > b.before {
			e.missed = 0
		}
		return
	}
	want, came := b.before+int64(b.group.batches), b.before
	now := time.Now()
	last, until := now, now.Add(min(refillTime, time.Duration(b.group.batches)*fillEach))
	for now.Before(until) && now.Sub(last) < refillQuiet {
		runtime.Gosched()
		if e.copy.wanted.Load() && !e.settle() {
			return
		}
		n := e.gathered.Load()
		if n >= want {
			break
		}
		now = time.Now()
		if n > came {
			came, last = n, now
		}
	}
	if e.gathered.Load() > b.before {
		e.missed = 0
	}
}

// awaitSeen waits until readers see every group whose tickets have ended durable; the
// lock is held, and released meanwhile. If the engine fails first, readers never see
// the group, and awaitSeen returns the failure.
func (e *Engine) awaitSeen(ctx context.Context) error {
	for e.unseen != nil {
		if e.failure != nil {
			return e.failure
		}
		seen := e.unseen
		e.copy.wanted.Store(true)
		e.mu.Unlock()
		select {
		case <-seen:
		case <-e.failed:
		case <-ctx.Done():
		}
		e.mu.Lock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}
