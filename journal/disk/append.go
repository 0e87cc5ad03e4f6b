package disk

import (
	"bytes"
	"context"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/internal/order"
)

// Append implements journal.Engine. Everything that does not depend on the
// order is done before the lock is taken.
func (e *Engine) Append(ctx context.Context, b journal.Batch) (*journal.Ticket, error) {
	if err := b.Validate(); err != nil {
		return nil, err
	}
	size := int64(b.Size())
	room := draftPool.Get().(*draftRoom)
	defer room.release()
	drafts := room.encode(&b)
	data := e.recent.copyRecords(&b)
	found, view := e.findClaims(claimNames(&b))
	if err := e.enterWrite(ctx, size); err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	e.addClaims(found, view)
	g := e.group
	plan := &e.plan
	if err := e.book.Order(&b, g.fate, e.now(), plan); err != nil {
		return nil, err
	}
	e.writeBatch(g, &b, drafts, plan)
	if data != nil {
		g.commits = append(g.commits, commitOf(&b, data, plan))
	}
	if e.copy != nil {
		g.hints = append(g.hints, bytes.Clone(b.Hint))
	}
	g.last = plan.Offset
	g.batches++
	g.records += uint64(len(drafts))
	e.grow(g, size)
	return plan.Ticket, nil
}

// draftRoom is reusable memory for the drafts of a batch. The group copies the drafts,
// so the next batch can use the same memory.
type draftRoom struct {
	drafts  []layout.Draft
	effects []byte
}

var draftPool = sync.Pool{New: func() any { return new(draftRoom) }}

// keptDrafts and keptEffects bound the memory that a draftRoom keeps for reuse.
const (
	keptDrafts  = 512
	keptEffects = 256 << 10
)

// encode makes the drafts of a batch's records.
func (r *draftRoom) encode(b *journal.Batch) []layout.Draft {
	for i := range b.Appends {
		for j := range b.Appends[i].Records {
			var d layout.Draft
			d, r.effects = layout.NewDraft(&b.Appends[i].Records[j], r.effects)
			r.drafts = append(r.drafts, d)
		}
	}
	return r.drafts
}

func (r *draftRoom) release() {
	if cap(r.drafts) > keptDrafts || cap(r.effects) > keptEffects {
		return
	}
	clear(r.drafts)
	r.drafts, r.effects = r.drafts[:0], r.effects[:0]
	draftPool.Put(r)
}

// enterWrite takes the lock when a write of the given size may be ordered.
func (e *Engine) enterWrite(ctx context.Context, size int64) error {
	return e.enterWhen(ctx, e.refusal, func() bool { return e.hasRoom(size) })
}

// enterDrop takes the lock when a drop may be ordered. A drop frees space, so it
// is admitted while appends are refused because the disk is full.
func (e *Engine) enterDrop(ctx context.Context) error {
	return e.enterWhen(ctx, e.refusedUpkeep, func() bool { return e.hasRoom(0) })
}

// hasRoom reports whether a write of the given size stays within MaxUnsynced and, in a
// copy, within the size limit of one group; the lock is held.
func (e *Engine) hasRoom(size int64) bool {
	if e.copy != nil && !e.group.batch.Empty() && int64(e.group.batch.Len())+size > e.copy.groupBytes {
		return false
	}
	return e.stats.Unsynced == 0 || e.stats.Unsynced+size <= e.opts.MaxUnsynced
}

// enterWhen waits until the engine is not paused and ready returns true, and returns
// nil with the lock held. If refusal returns an error or ctx ends, it returns that error.
func (e *Engine) enterWhen(ctx context.Context, refusal func() error, ready func() bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e.mu.Lock()
	for {
		if err := refusal(); err != nil {
			e.mu.Unlock()
			return err
		}
		if !e.paused && ready() {
			return nil
		}
		room := e.room
		e.waiting++
		e.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
		}
		e.mu.Lock()
		e.waiting--
		if ctx.Err() != nil {
			defer e.mu.Unlock()
			return context.Cause(ctx)
		}
	}
}

// wakeAppends wakes the appends that wait for room; the lock is held.
func (e *Engine) wakeAppends() {
	if e.waiting > 0 {
		close(e.room)
		e.room = make(chan struct{})
	}
}

// grow counts the bytes added to the gathering group; the lock is held.
func (e *Engine) grow(g *group, size int64) {
	g.bytes += size
	e.stats.Unsynced += size
	if e.gathered.Add(1) == 1 {
		signal(e.wake)
	}
}

// writeBatch puts an ordered batch into the group; the lock is held, so that
// the group's operations are in offset order.
func (e *Engine) writeBatch(g *group, b *journal.Batch, drafts []layout.Draft, plan *order.Plan) {
	for i := range b.Appends {
		a, id, seq := &b.Appends[i], plan.Heads[i].ID, plan.First(i)
		if plan.Created(i) {
			e.set(g.batch, layout.NameKey(e.scratch[:0], id), func(b, key []byte) []byte { return layout.AppendName(b, key, a.Log) })
		}
		for j := range a.Records {
			d := &drafts[j]
			op := g.batch.SetDeferred(layout.RecordKeyLen, d.Size())
			layout.PutRecordKey(op.Key, id, seq+uint64(j))
			d.Put(op.Value, op.Key, plan.Offset)
			_ = op.Finish()
			e.writeIndex(g.batch, id, &a.Records[j])
		}
		drafts = drafts[len(a.Records):]
		g.addHead(a.Log, plan.Heads[i])
	}
	for _, change := range plan.Claims {
		e.writeClaim(g.batch, change)
	}
	g.claims = append(g.claims, plan.Claims...)
	for i := range b.Values {
		w := &b.Values[i]
		key := layout.ValueKey(e.scratch[:0], layout.KindValue, w.Key)
		if w.Delete {
			_ = g.batch.Delete(key, nil)
			e.scratch = key
			continue
		}
		e.set(g.batch, key, func(b, key []byte) []byte {
			return layout.AppendValue(b, key, journal.Value{Data: w.Data, Version: plan.Offset})
		})
	}
	g.entries.AddBatch(b, plan)
}

// set encodes a key and its value into one reused buffer and adds them to the batch.
func (e *Engine) set(batch *pebble.Batch, key []byte, encode func(b, key []byte) []byte) {
	e.scratch = encode(key, key)
	_ = batch.Set(e.scratch[:len(key)], e.scratch[len(key):], nil)
}

func (e *Engine) writeIndex(batch *pebble.Batch, id order.ID, r *journal.Record) {
	for _, k := range r.Remove {
		key := layout.IndexKey(e.scratch[:0], k, id)
		_ = batch.Delete(key, nil)
		e.scratch = key
	}
	for i := range r.Put {
		put := &r.Put[i]
		e.set(batch, layout.IndexKey(e.scratch[:0], put.Key, id), func(b, key []byte) []byte {
			return layout.AppendSum(append(b, put.Value...), len(key), key)
		})
	}
}

func (e *Engine) writeClaim(batch *pebble.Batch, change order.ClaimChange) {
	key := layout.ClaimKey(e.scratch[:0], change.Name)
	if change.Held == nil {
		_ = batch.Delete(key, nil)
		e.scratch = key
		return
	}
	e.set(batch, key, func(b, key []byte) []byte { return layout.AppendClaim(b, key, change.Held) })
	if ms := layout.Milliseconds(change.Held.Expires); ms != 0 {
		key := layout.ExpiryKey(e.scratch[:0], ms, change.Name)
		_ = batch.Set(key, nil, nil)
		e.scratch = key
	}
}
