package disk

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/internal/order"
)

// rebuildBytes bounds one write of a rebuild.
const rebuildBytes = 1 << 20

// RebuildIndex implements journal.Engine.
func (e *Engine) RebuildIndex(ctx context.Context) error {
	if err := e.enterWhen(ctx, e.refusedLocally, func() bool { return e.hasRoom(0) }); err != nil {
		return err
	}
	e.paused = true
	e.mu.Unlock()
	resume := func() {
		e.mu.Lock()
		e.paused = false
		e.wakeAppends()
		e.mu.Unlock()
	}
	begun, err := e.betweenGroups(ctx, true, func() error {
		defer resume()
		if err := e.replayAll(e.view, nil); err != nil {
			return fmt.Errorf("the index stays as it is: %w", err)
		}
		view, err := e.rebuild()
		if err != nil {
			// A partial index must not be used; the next open rebuilds it.
			e.fail(fmt.Errorf("rebuilding the index: %w", err))
			return err
		}
		e.mu.Lock()
		old := e.view
		e.view = view
		e.claims.reset(view.number)
		e.sieves.claims.forget()
		e.mu.Unlock()
		old.release()
		return nil
	}, func() {})
	if !begun {
		resume()
	}
	return err
}

// rebuild makes the index and the claims again from the records. It runs while
// there are no other writes; readers keep the old view until the new one is complete.
func (e *Engine) rebuild() (*view, error) {
	old := e.view
	w := &rebuildWriter{e: e, batch: e.db.NewIndexedBatch()}
	defer func() { _ = w.batch.Close() }()
	_ = w.batch.Delete(layout.KeyIndex, nil)
	for _, kind := range []byte{layout.KindIndex, layout.KindClaim, layout.KindExpiry} {
		_ = w.batch.DeleteRange([]byte{kind}, []byte{kind + 1}, nil)
	}
	// The removal of the marker must be durable before anything else is removed.
	if err := w.flush(true); err != nil {
		return nil, err
	}
	if err := e.replayAll(old, w); err != nil {
		return nil, err
	}
	_ = w.batch.Set(layout.KeyIndex, layout.AppendNumber(nil, layout.KeyIndex, 1), nil)
	if err := w.flush(true); err != nil {
		return nil, err
	}
	v := &view{engine: e, snap: e.db.NewSnapshot(), number: old.number + 1, offset: old.offset, hidden: old.hidden}
	v.refs.Store(1)
	return v, nil
}

// rebuildWriter writes in pieces of bounded size, and can read what it has written.
type rebuildWriter struct {
	e     *Engine
	batch *pebble.Batch
}

func (w *rebuildWriter) flush(sync bool) error {
	if err := w.e.write(w.batch, sync); err != nil {
		return err
	}
	_ = w.batch.Close()
	w.batch = w.e.db.NewIndexedBatch()
	return nil
}

// replayAll writes the effects of all records to the index and the claims. Without
// a writer it only checks that the records can be read.
func (e *Engine) replayAll(v *view, w *rebuildWriter) error {
	return v.eachEntry(1, func(offset uint64, en layout.Entry) (bool, error) {
		e.gotOn()
		for _, write := range en.Writes {
			if err := e.replay(v, w, offset, write); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

func (e *Engine) replay(v *view, w *rebuildWriter, offset uint64, write layout.Written) error {
	log, found, err := v.name(write.ID)
	if err != nil {
		return err
	}
	if _, gone := v.hidden[write.ID]; gone || !found {
		return nil // dropped
	}
	it, err := v.iter(layout.RecordKey(nil, write.ID, write.First), layout.RecordKey(nil, write.ID, write.Last()+1))
	if err != nil {
		return err
	}
	defer it.Close() //nolint:errcheck // read errors are looked at below
	seq := write.First
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return layout.StoreError(err)
		}
		rec, err := layout.DecodeRecord(value, write.ID, seq)
		if err != nil {
			return layout.Damaged(err, "record %d of log %v", seq, log)
		}
		if rec.Effects != nil {
			effects, err := rec.DecodeEffects()
			if err != nil {
				return layout.Damaged(err, "record %d of log %v", seq, log)
			}
			if w != nil {
				err = e.replayEffects(w, write.ID, log, seq, offset, &effects)
			}
			if err != nil {
				return err
			}
		}
		seq++
	}
	if err := it.Error(); err != nil {
		return layout.StoreError(err)
	}
	if seq != write.Last()+1 {
		return layout.Damaged(nil, "record %d of log %v is missing; it", seq, log)
	}
	return nil
}

func (e *Engine) replayEffects(w *rebuildWriter, id order.ID, log journal.LogName, seq, offset uint64, r *journal.Record) error {
	e.writeIndex(w.batch, id, r)
	for _, name := range r.Release {
		key := layout.ClaimKey(nil, name)
		value, closer, err := w.batch.Get(key)
		if errors.Is(err, pebble.ErrNotFound) {
			continue
		}
		if err != nil {
			return layout.StoreError(err)
		}
		held, err := layout.DecodeClaim(key, value)
		_ = closer.Close()
		if err != nil {
			return layout.Damaged(err, "claim %q", name)
		}
		if held.ID == id {
			e.writeClaim(w.batch, order.ClaimChange{Name: name})
		}
	}
	for _, take := range r.Take {
		e.writeClaim(w.batch, order.ClaimChange{Name: take.Name, Held: &order.Held{ID: id, Claimed: journal.Claimed{
			Name: take.Name, Log: log, Incarnation: id.Incarnation(), Seq: seq, Offset: offset, Expires: take.Expires,
		}}})
	}
	if w.batch.Len() > rebuildBytes {
		return w.flush(false)
	}
	return nil
}
