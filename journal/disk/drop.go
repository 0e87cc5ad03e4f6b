package disk

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/internal/order"
)

// A removal is done in steps of bounded size, so that it does not delay other writes.
const (
	removalRecords = 256
	removalBytes   = 1 << 20
	removalLogs    = 64
)

// job is a drop and the logs it removes.
type job struct {
	removal order.Removal
	ids     []layout.Removal
	durable bool // the drop is durable; its removal may begin
}

// Drop implements journal.Engine.
func (e *Engine) Drop(ctx context.Context, log journal.LogName) (*journal.Ticket, error) {
	if err := log.Validate(); err != nil {
		return nil, err
	}
	if err := e.enterDrop(ctx); err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	head, _, err := e.book.Head(log)
	if err != nil {
		return nil, err
	}
	g := e.group
	ticket, r, err := e.book.DropLog(log, g.fate)
	if err != nil || r == nil {
		return ticket, err
	}
	e.writeDrop(g, &job{removal: *r, ids: []layout.Removal{{ID: head.ID, Log: log, Offset: r.Offset}}})
	return ticket, nil
}

// DropPartition implements journal.Engine.
func (e *Engine) DropPartition(ctx context.Context, p journal.PartitionName, keep ...string) (*journal.Ticket, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	// Snapshots are disposable. They are removed first, so that a crash leaves none.
	if err := e.dropSnapshots(ctx, p); err != nil {
		return nil, err
	}
	if err := e.enterDrop(ctx); err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	heads := e.book.PendingHeads(p)
	prefix := layout.PartitionKey(nil, layout.KindHead, p)
	err := e.view.eachHead(prefix, layout.After(prefix), func(log journal.LogName, head order.Head) bool {
		if _, newer := heads[log]; !newer {
			heads[log] = head
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	going := e.going()
	ticket, r := e.book.DropPartition(p, keep, e.group.fate)
	j := &job{removal: *r}
	for log, head := range heads {
		if _, already := going[head.ID]; !already && r.Covers(log, head.ID.Incarnation()) {
			j.ids = append(j.ids, layout.Removal{ID: head.ID, Log: log, Offset: r.Offset})
		}
	}
	for _, kind := range []byte{layout.KindValue, layout.KindLazy} {
		prefix := layout.PartitionKey(nil, kind, p)
		_ = e.group.batch.DeleteRange(prefix, layout.After(prefix), nil)
	}
	e.dropLazy(p)
	e.writeDrop(e.group, j)
	return ticket, nil
}

// dropLazy makes sure that lazy values which are only in memory are not saved
// after the drop. Readers see them until the drop is durable. Values written from
// now on stay. The lock is held.
func (e *Engine) dropLazy(p journal.PartitionName) {
	g := e.group
	if g.dropped == nil {
		g.dropped = map[journal.ValueKey]struct{}{}
	}
	for key := range e.lazy {
		if key.Partition == p {
			g.dropped[key] = struct{}{}
		}
	}
}

// going returns the logs whose removal is ordered already; the lock is held.
func (e *Engine) going() map[order.ID]struct{} {
	ids := map[order.ID]struct{}{}
	for _, j := range e.jobs {
		for _, r := range j.ids {
			ids[r.ID] = struct{}{}
		}
	}
	return ids
}

// writeDrop marks the logs that are to be removed; the lock is held.
func (e *Engine) writeDrop(g *group, j *job) {
	for _, r := range j.ids {
		e.set(g.batch, layout.RemovalKey(e.scratch[:0], r.ID), func(b, key []byte) []byte { return layout.AppendRemoval(b, key, r) })
	}
	_ = g.batch.Set(layout.KeyGoing, nil, nil)
	g.entries.AddDrop(&j.removal)
	if e.copy != nil {
		g.hints = append(g.hints, nil)
	}
	g.last = j.removal.Offset
	g.batches++
	g.drops = append(g.drops, j)
	e.jobs = append(e.jobs, j)
	e.grow(g, 0)
}

// removeLoop finishes drops, oldest first. A removal that fails is retried when
// e.dropped is signalled, and after the next open.
func (e *Engine) removeLoop() {
	defer e.helpers.Done()
	for {
		j := e.nextJob()
		if j != nil {
			err := e.remove(j)
			if err == nil {
				continue
			}
			if e.refusedDrop() == nil {
				e.opts.Logger.Error("removing dropped logs failed", "error", err)
			}
		}
		select {
		case <-e.dropped:
		case <-e.stop:
			return
		}
	}
}

func (e *Engine) nextJob() *job {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.jobs) > 0 && e.jobs[0].durable && e.notMine == nil {
		return e.jobs[0]
	}
	return nil
}

func (e *Engine) remove(j *job) error {
	if j.removal.Whole() { // a snapshot may have been put since the drop
		if err := e.snapshots.dropPartition(j.removal.Partition); err != nil {
			return err
		}
	}
	for left := j.ids; len(left) > 0; {
		done, err := e.removeSome(left)
		if err != nil {
			return err
		}
		left = left[done:]
	}
	for logs := range slices.Chunk(j.ids, removalLogs) {
		if err := e.upkeep(func(g *group) error { return e.removeHeads(g, logs) }); err != nil {
			return err
		}
	}
	return e.upkeep(func(g *group) error {
		if len(e.jobs) == 1 {
			_ = g.batch.Delete(layout.KeyGoing, nil)
		}
		g.finished = append(g.finished, j)
		return nil
	})
}

// removeHeads removes the remaining keys of logs whose records are removed; the
// lock is held.
func (e *Engine) removeHeads(g *group, logs []layout.Removal) error {
	for _, r := range logs {
		if raw, err := e.book.RawHead(r.Log); err != nil {
			return err
		} else if raw.ID == r.ID {
			_ = g.batch.Delete(layout.HeadKey(nil, r.Log), nil)
		}
		_ = g.batch.Delete(layout.NameKey(nil, r.ID), nil)
		_ = g.batch.Delete(layout.RemovalKey(nil, r.ID), nil)
	}
	return nil
}

// removeSome takes one step: it removes the first records of these logs, and reports
// how many of the logs have none left. Many small logs share a step, because each
// step waits until it is durable.
func (e *Engine) removeSome(logs []layout.Removal) (done int, err error) {
	v, err := e.enter(context.Background(), e.shard)
	if err != nil {
		return 0, err
	}
	var step removalStep
	for done < min(len(logs), removalRecords) {
		var all bool
		if all, err = v.removable(logs[done], &step); !all {
			break
		}
		done++
	}
	v.leave()
	switch {
	case err != nil && done > 0: // remove the logs that can be read
		return e.removeSome(logs[:done])
	case err != nil || len(step.effects) == 0:
		return done, err
	}
	found, view := e.findClaims(takenBy(step.effects))
	return done, e.upkeep(func(g *group) error {
		e.addClaims(found, view)
		for i := range step.effects {
			if err := e.undo(g, step.ids[i], &step.effects[i]); err != nil {
				return err
			}
		}
		for _, s := range step.spans {
			_ = g.batch.DeleteRange(layout.RecordKey(nil, s.id, s.first), layout.RecordKey(nil, s.id, s.last+1), nil)
		}
		return nil
	})
}

// removalStep is what one step removes.
type removalStep struct {
	size    int
	effects []journal.Record // of each record
	ids     []order.ID       // its log
	spans   []recordSpan
}

type recordSpan struct {
	id          order.ID
	first, last uint64
}

func (s *removalStep) full() bool { return len(s.effects) >= removalRecords || s.size >= removalBytes }

// removable adds the effects of the first records of a log to a step until the step
// is full, and reports whether these are all records of the log. It returns an error
// if a record cannot be read; the removal then stops.
func (v *view) removable(r layout.Removal, step *removalStep) (all bool, err error) {
	it, err := v.iter(layout.RecordKey(nil, r.ID, 0), layout.RecordKey(nil, r.ID+1, 0))
	if err != nil {
		return false, err
	}
	defer it.Close() //nolint:errcheck // read errors are looked at below
	span := recordSpan{id: r.ID}
	ok := it.First()
	for ; ok && !step.full(); ok = it.Next() {
		seq := layout.SeqOf(it.Key())
		value, err := it.ValueAndErr()
		if err != nil {
			return false, layout.StoreError(err)
		}
		rec, err := layout.DecodeRecord(bytes.Clone(value), r.ID, seq)
		if err != nil {
			return false, layout.Damaged(err, "record %d of the dropped log %v", seq, r.Log)
		}
		effect, err := rec.DecodeEffects()
		if err != nil {
			return false, layout.Damaged(err, "record %d of the dropped log %v", seq, r.Log)
		}
		span.first, span.last = cmp.Or(span.first, seq), seq
		step.size += len(value)
		step.effects, step.ids = append(step.effects, effect), append(step.ids, r.ID)
	}
	if err := it.Error(); err != nil {
		return false, layout.StoreError(err)
	}
	if span.last > 0 {
		step.spans = append(step.spans, span)
	}
	return !ok, nil
}

// undo removes the index entries that a record put, and the claims that it took
// if its log still holds them; the lock is held.
func (e *Engine) undo(g *group, id order.ID, r *journal.Record) error {
	for _, put := range r.Put {
		_ = g.batch.Delete(layout.IndexKey(nil, put.Key, id), nil)
	}
	for _, take := range r.Take {
		held, _, err := e.book.RawClaim(take.Name)
		if err != nil {
			return fmt.Errorf("looking for the holder of claim %q: %w", take.Name, err)
		}
		// A claim without a holder here, because the index was rebuilt since,
		// may still be held in another copy.
		if held == nil || held.ID == id {
			e.freeClaim(g, take.Name)
		}
	}
	return nil
}

// freeClaim deletes a claim as upkeep; the lock is held.
func (e *Engine) freeClaim(g *group, name string) {
	_ = g.batch.Delete(layout.ClaimKey(nil, name), nil)
	g.claims = append(g.claims, order.ClaimChange{Name: name})
}

// takenBy lists the claims that records took.
func takenBy(effects []journal.Record) []string {
	var names []string
	for i := range effects {
		for _, take := range effects[i].Take {
			names = append(names, take.Name)
		}
	}
	return names
}

// upkeep adds writes that take no offset to the gathering group, and waits until
// they are durable.
func (e *Engine) upkeep(write func(g *group) error) error {
	e.mu.Lock()
	for e.paused && e.refusedUpkeep() == nil {
		room := e.room
		e.waiting++
		e.mu.Unlock()
		<-room
		e.mu.Lock()
		e.waiting--
	}
	if err := e.refusedUpkeep(); err != nil {
		e.mu.Unlock()
		return err
	}
	g := e.group
	if err := write(g); err != nil {
		e.mu.Unlock()
		return err
	}
	e.mu.Unlock()
	signal(e.wake)
	<-g.fate.Done()
	if g.fate.Outcome() != journal.Durable {
		return journal.ErrFailed
	}
	return nil
}

// removed forgets a finished removal; the lock is held.
func (e *Engine) removed(j *job) {
	e.book.Removed(&j.removal)
	for _, r := range j.ids {
		if head, ok := e.heads.get(r.Log); ok && head.ID == r.ID {
			e.heads.remove(r.Log)
		}
	}
	for i := range e.jobs {
		if e.jobs[i] == j {
			e.jobs = append(e.jobs[:i:i], e.jobs[i+1:]...)
			return
		}
	}
}
