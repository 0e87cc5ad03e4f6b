package mem

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/parley-hub/parley/journal"
)

// commitLoop runs the only committer. It takes the gathered group, waits for the
// sync, and only then makes the group visible.
func (e *Engine) commitLoop() {
	defer close(e.done)
	for {
		select {
		case <-e.wake:
		case <-e.closing:
			e.drain()
			return
		case <-e.faults.crashed:
			e.die()
			return
		}
		if !e.commit() {
			return
		}
	}
}

// commit makes one group durable, or takes one step of a removal. It reports
// whether the engine goes on.
func (e *Engine) commit() bool {
	g := e.take()
	if len(g.last) == 0 {
		return e.removeStep()
	}
	if err := e.faults.writing(); err != nil {
		e.forget(g, journal.Failed, err)
		return true
	}
	switch err := e.faults.syncing(); {
	case errors.Is(err, errCrashed):
		e.abandon(g)
		return false
	case err != nil:
		e.poison(g, err)
		return false
	}
	e.finish(g)
	e.signal() // more may be gathered, or a removal begun
	return true
}

func (e *Engine) take() *group {
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	g := e.group
	e.group = newGroup()
	return g
}

func (e *Engine) finish(g *group) {
	s := e.store
	s.mu.Lock()
	for _, write := range g.writes {
		write()
	}
	for _, r := range g.drops {
		if r.Whole() {
			maps.DeleteFunc(e.lazy, e.dropsLazy(r))
		}
	}
	for n, last := range g.last {
		e.books[n].Settle(last)
	}
	e.saveLazy()
	e.stats.Batches += g.batches
	e.stats.Records += g.records
	e.stats.Bytes += uint64(g.bytes)
	e.stats.Groups++
	e.stats.Syncs++
	e.release(g.bytes)
	s.mu.Unlock()
	g.fate.End(journal.Durable, nil)
	e.ring(g)
}

func (e *Engine) saveLazy() {
	for key, v := range e.lazy {
		if v.Version == 0 {
			delete(e.store.of(key.Partition).lazy, key)
		} else {
			e.store.of(key.Partition).lazy[key] = v
		}
	}
	clear(e.lazy)
}

func (e *Engine) release(bytes int64) {
	e.stats.Unsynced -= bytes
	close(e.space)
	e.space = make(chan struct{})
}

func (e *Engine) ring(g *group) {
	for _, r := range g.drops {
		if r.Whole() {
			e.bell.RingPartition(r.Partition)
		} else {
			g.logs = append(g.logs, r.Log)
		}
	}
	e.bell.Ring(g.logs...)
}

// removeStep continues the oldest removal, as a separate write.
func (e *Engine) removeStep() bool {
	e.store.mu.Lock()
	n := e.removing()
	e.store.mu.Unlock()
	if n < 0 {
		return true
	}
	switch err := e.faults.syncing(); {
	case errors.Is(err, errCrashed):
		e.abandon(e.take())
		return false
	case err != nil:
		e.poison(e.take(), err)
		return false
	}
	e.store.mu.Lock()
	if r := e.store.shards[n].removeSome(); r != nil {
		e.books[n].Removed(r)
	}
	e.store.mu.Unlock()
	e.signal()
	return true
}

// removing returns a shard with an unfinished removal, or -1 if there is none; the
// lock is held.
func (e *Engine) removing() int {
	return slices.IndexFunc(e.store.shards, func(sh *shard) bool { return len(sh.removals) > 0 })
}

// forget ends a group that never reached the disk, and all groups after it. Every
// shard continues from what is durable, because the shards share their syncs.
func (e *Engine) forget(g *group, outcome journal.Outcome, cause error) {
	e.store.mu.Lock()
	behind := e.group
	e.group = newGroup()
	for _, book := range e.books {
		book.Forget()
	}
	e.release(g.bytes + behind.bytes)
	e.store.mu.Unlock()
	g.fate.End(outcome, cause)
	behind.fate.End(journal.Aborted, cause)
}

// poison ends a group whose sync failed. The next open finds the group; this engine
// admits nothing more.
func (e *Engine) poison(g *group, cause error) {
	e.store.mu.Lock()
	e.broken = fmt.Errorf("%w: %w", journal.ErrFailed, cause)
	e.store.limbo = append(e.store.limbo, g.writes...)
	e.store.mu.Unlock()
	e.forget(g, journal.Unknown, cause)
	e.bell.Close(e.broken)
	close(e.failed)
}

// abandon ends a crashed engine. After a real crash there are no callers; here the
// callers must not hang.
func (e *Engine) abandon(g *group) {
	e.store.mu.Lock()
	e.broken = fmt.Errorf("%w: %w", journal.ErrClosed, errCrashed)
	e.store.open = false
	e.store.mu.Unlock()
	e.forget(g, journal.Unknown, errCrashed)
	e.bell.Close(e.broken)
}

func (e *Engine) die() { e.abandon(e.take()) }

// drain makes what is left durable, then closes.
func (e *Engine) drain() {
	for {
		e.store.mu.Lock()
		empty := len(e.group.last) == 0
		if empty {
			e.saveLazy()
			e.store.open = false
		}
		e.store.mu.Unlock()
		if empty || !e.commit() {
			return
		}
	}
}

// Close implements journal.Engine.
func (e *Engine) Close() error {
	e.closeOnce.Do(func() {
		e.store.mu.Lock()
		if e.broken == nil {
			e.broken = journal.ErrClosed
		}
		close(e.space)
		e.space = make(chan struct{})
		e.store.mu.Unlock()
		close(e.closing)
	})
	<-e.done
	e.store.mu.Lock()
	e.store.open = false
	if errors.Is(e.broken, journal.ErrFailed) {
		e.broken = fmt.Errorf("%w; before that: %w", journal.ErrClosed, e.broken)
	}
	e.store.mu.Unlock()
	e.bell.Close(journal.ErrClosed)
	return nil
}

// clone copies a batch, so that the caller may reuse its bytes.
func clone(b *journal.Batch) *journal.Batch {
	c := &journal.Batch{
		Appends: append([]journal.Append(nil), b.Appends...),
		Values:  append([]journal.ValueWrite(nil), b.Values...),
	}
	for i := range c.Appends {
		c.Appends[i].Records = append([]journal.Record(nil), c.Appends[i].Records...)
		for j := range c.Appends[i].Records {
			r := &c.Appends[i].Records[j]
			r.Data = copyBytes(r.Data)
			r.Put = append([]journal.IndexPut(nil), r.Put...)
			for k := range r.Put {
				r.Put[k] = journal.IndexPut{Key: copyBytes(r.Put[k].Key), Value: copyBytes(r.Put[k].Value)}
			}
			r.Remove = append([][]byte(nil), r.Remove...)
			for k := range r.Remove {
				r.Remove[k] = copyBytes(r.Remove[k])
			}
			r.Take = append([]journal.Take(nil), r.Take...)
			r.Release = append([]string(nil), r.Release...)
		}
	}
	for i := range c.Values {
		c.Values[i].Data = copyBytes(c.Values[i].Data)
	}
	return c
}

func copyBytes(b []byte) []byte { return append([]byte{}, b...) }
