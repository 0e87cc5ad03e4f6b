package disk

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/internal/order"
)

// view is what readers see: the store as it was after a sync. A plain read
// would show what is not yet synced.
type view struct {
	engine *Engine
	snap   *pebble.Snapshot
	number uint64 // counts the views of this process
	offset uint64
	hidden map[order.ID]struct{} // logs that were dropped and are not yet removed; never changed
	refs   atomic.Int64

	seekers seekers
}

// newView returns the view that follows an older one by one group.
func newView(e *Engine, snap *pebble.Snapshot, old *view, g *group) *view {
	v := &view{engine: e, snap: snap, number: old.number + 1, offset: old.offset, hidden: old.hidden}
	v.refs.Store(1)
	if g.last > 0 {
		v.offset = g.last
	}
	if len(g.drops)+len(g.finished) > 0 {
		v.hidden = maps.Clone(v.hidden)
		for _, j := range g.drops {
			for _, id := range j.ids {
				v.hidden[id.ID] = struct{}{}
			}
		}
		for _, j := range g.finished {
			for _, id := range j.ids {
				delete(v.hidden, id.ID)
			}
		}
	}
	return v
}

func (v *view) release() {
	if v.refs.Add(-1) == 0 && !v.engine.wedged.Load() {
		v.seekers.close()
		_ = v.snap.Close()
	}
}

// enter begins a read. The caller ends it with view.leave.
func (e *Engine) enter(ctx context.Context, shard int) (*view, error) {
	if err := e.checkShard(ctx, shard); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.enterSeen(ctx)
}

// enterSeen begins a read that sees every batch whose ticket has ended durable; the
// lock is held, and may be released and taken again.
func (e *Engine) enterSeen(ctx context.Context) (*view, error) {
	if err := e.awaitSeen(ctx); err != nil {
		return nil, err
	}
	return e.enterLocked()
}

// enterLocked begins a read of what readers see now; the lock is held. In a copy, a
// group that has just become durable may be missing.
func (e *Engine) enterLocked() (*view, error) {
	if e.closed {
		return nil, journal.ErrClosed
	}
	e.readers.Add(1)
	e.view.refs.Add(1)
	return e.view, nil
}

func (v *view) leave() {
	v.release()
	v.engine.readers.Done()
}

// get calls decode with the value of a key; it returns false if there is none.
func (v *view) get(key []byte, decode func(value []byte) error) (bool, error) {
	value, closer, err := v.snap.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, layout.StoreError(err)
	}
	defer closer.Close() //nolint:errcheck // never fails
	if err := decode(value); err != nil {
		return false, err
	}
	return true, nil
}

func (v *view) iter(lower, upper []byte) (*pebble.Iterator, error) {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, layout.StoreError(err)
	}
	return it, nil
}

// rawHead reads the head of a log, whether or not the log is being removed.
func (v *view) rawHead(log journal.LogName) (order.Head, error) { return v.headBy(v.get, log) }

func (v *view) headBy(lookup func(key []byte, decode func([]byte) error) (bool, error), log journal.LogName) (order.Head, error) {
	var head order.Head
	key := layout.HeadKey(nil, log)
	_, err := lookup(key, func(value []byte) (err error) {
		if head, err = layout.DecodeHead(key, value); err != nil {
			return layout.Damaged(err, "the head of log %v", log)
		}
		return nil
	})
	return head, err
}

// visible returns a head, or none when its log was dropped.
func (v *view) visible(head order.Head) order.Head {
	if _, gone := v.hidden[head.ID]; gone {
		return order.Head{}
	}
	return head
}

func (v *view) claim(name string) (*order.Held, error) {
	var held *order.Held
	key := layout.ClaimKey(nil, name)
	_, err := v.seek(key, func(value []byte) (err error) {
		if held, err = layout.DecodeClaim(key, value); err != nil {
			return layout.Damaged(err, "claim %q", name)
		}
		return nil
	})
	return held, err
}

func (v *view) value(kind byte, at journal.ValueKey) (journal.Value, error) {
	var out journal.Value
	key := layout.ValueKey(nil, kind, at)
	_, err := v.get(key, func(value []byte) (err error) {
		if out, err = layout.DecodeValue(key, value); err != nil {
			return layout.Damaged(err, "value %q of %v", at.Name, at.Partition)
		}
		return nil
	})
	return out, err
}

func (v *view) name(id order.ID) (journal.LogName, bool, error) {
	var log journal.LogName
	key := layout.NameKey(nil, id)
	found, err := v.get(key, func(value []byte) (err error) {
		if log, err = layout.DecodeName(key, value); err != nil {
			return layout.Damaged(err, "the name of log number %d", id)
		}
		return nil
	})
	return log, found, err
}

// base gives the book access to durable state. It is used with the lock held.
type base struct{ e *Engine }

func (b base) Head(log journal.LogName) (order.Head, error) {
	if head, ok := b.e.heads.get(log); ok {
		return head, nil
	}
	s := &b.e.sieves.heads
	var hash uint64
	if hash, b.e.scratch = s.log(log, b.e.scratch); s.lacks(hash) {
		return order.Head{}, nil
	}
	head, err := b.e.view.headBy(b.e.view.seek, log) // most logs that are not in the cache are new
	if err == nil {
		b.e.heads.put(log, head)
	}
	if err == nil && head.ID == 0 {
		s.vain++
	}
	return head, err
}

func (b base) Claim(name string) (*order.Held, error) {
	if held, ok := b.e.claims.get(name); ok {
		return held, nil
	}
	if s := &b.e.sieves.claims; s.lacks(s.claim(name)) {
		return nil, nil
	}
	return b.e.view.claim(name)
}

func (b base) Value(key journal.ValueKey) (journal.Value, error) {
	return b.e.view.value(layout.KindValue, key)
}
