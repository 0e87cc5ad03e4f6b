package disk

import (
	"bytes"
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
)

// fillTime is how long the committer waits for the writers it just released, and
// fillEach how long for each of them: most append again at once, and then share a
// sync. Waiting longer for one would only use a processor.
const (
	fillTime = 100 * time.Microsecond
	fillEach = 20 * time.Microsecond
)

// After fillMisses waits in which no batch arrived, the committer waits only every
// fillProbe-th time.
const (
	fillMisses = 4
	fillProbe  = 16
)

// commitLoop runs the only committer: it takes the group gathered during the last
// sync, makes it durable, and lets readers see it.
func (e *Engine) commitLoop() {
	defer close(e.done)
	for closing := false; !closing; {
		select {
		case <-e.wake:
		case task := <-e.tasks:
			task(nil)
			continue
		case <-e.stop:
			closing = true
		}
		released := int64(0)
		for {
			g, lazy := e.take(closing)
			if g == nil {
				if !e.settle() {
					e.refuseTasks()
					return
				}
				break
			}
			if !e.commit(g, lazy) {
				e.refuseTasks()
				return
			}
			released = int64(g.batches)
			e.fill(released)
			select {
			case task := <-e.tasks:
				_ = e.settle() // the task returns an error if the engine has failed
				task(nil)
			default:
			}
		}
	}
	e.refuseTasks()
}

// refuseTasks ends the tasks that were submitted too late to run.
func (e *Engine) refuseTasks() {
	for {
		select {
		case task := <-e.tasks:
			task(journal.ErrClosed)
		default:
			return
		}
	}
}

// fill waits, for at most fillTime, until as many batches arrive as were just
// released. It yields rather than sleeps, because a timer would oversleep. If no
// batch arrived in the last waits, it seldom waits, because waiting uses a processor.
func (e *Engine) fill(released int64) {
	if e.copy != nil && e.copy.behind != nil {
		e.refill()
		return
	}
	if e.missed++; e.missed > fillMisses && e.missed%fillProbe != 0 {
		if e.gathered.Load() > 0 {
			e.missed = 0
		}
		return
	}
	until := time.Now().Add(min(fillTime, time.Duration(released)*fillEach))
	for e.gathered.Load() < released && time.Now().Before(until) {
		runtime.Gosched()
	}
	if e.gathered.Load() > 0 {
		e.missed = 0
	}
}

// take makes the gathering group the one in flight. Lazy values are saved with
// the group; if it is empty, they are taken only when they are due.
func (e *Engine) take(closing bool) (*group, []lazyWrite) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.group
	if e.failure != nil {
		return nil, nil
	}
	if g.empty() && !(len(e.lazy) > 0 && e.notMine == nil && (closing || e.lazyDue)) {
		return nil, nil
	}
	e.lazyDue = false
	e.group = e.newGroup()
	e.gathered.Store(0)
	e.flight = g
	e.since.Store(time.Now().UnixNano())
	e.dirty, e.leaving = 0, e.dirty
	if e.copy != nil {
		e.wakeAppends() // the new group has room
	}
	if len(e.lazy) == 0 {
		e.leaving = 0
		return g, nil
	}
	g.saves = true
	e.saving, e.lazy = e.lazy, map[journal.ValueKey]journal.Value{}
	lazy := make([]lazyWrite, 0, len(e.saving))
	for key, v := range e.saving {
		if _, dropped := g.dropped[key]; !dropped {
			lazy = append(lazy, lazyWrite{key, v})
		}
	}
	return g, lazy
}

type lazyWrite struct {
	key   journal.ValueKey
	value journal.Value
}

// commit makes a group durable and visible. It reports whether the engine goes on.
func (e *Engine) commit(g *group, lazy []lazyWrite) bool {
	synced := !g.empty()
	if synced && e.noRoom(g) {
		return true
	}
	e.finishing[0], e.finishing[1] = e.finishing[1], e.finishing[0]
	g.finish(&e.finishing[0])
	var buf []byte
	for _, w := range lazy {
		key := layout.ValueKey(buf[:0], layout.KindLazy, w.key)
		if w.value.Version == 0 {
			_ = g.batch.Delete(key, nil)
			buf = key
			continue
		}
		buf = layout.AppendValue(key, key, w.value)
		_ = g.batch.Set(buf[:len(key)], buf[len(key):], nil)
	}
	return e.persist(g, synced)
}

// sync makes a group durable with a sync of the store's own log, and visible.
func (e *Engine) sync(g *group, synced bool) bool {
	began := time.Now()
	err := e.write(g.batch, synced)
	took := time.Since(began)
	if err == nil {
		err = e.replaced()
	}
	if err != nil {
		e.fail(err)
		return false
	}
	return e.publish(g, synced, took)
}

// finish adds the keys that are written once for each group. Keys of one kind are
// sorted, because Pebble inserts sorted keys faster.
func (g *group) finish(room *finishRoom) {
	if g.last > 0 {
		key := layout.CommitKey(nil, g.last)
		_ = g.batch.Set(key, g.entries.Value(key), nil)
		_ = g.batch.Set(layout.KeyLast, layout.AppendNumber(nil, layout.KeyLast, g.last), nil)
	}
	list, buf := room.list[:0], slices.Grow(room.keys[:0], 96*len(g.heads))
	for i := range g.heads {
		at := len(buf)
		buf = layout.HeadKey(buf, g.heads[i].log)
		list = append(list, keyedHead{buf[at:len(buf):len(buf)], i})
	}
	slices.SortFunc(list, func(a, b keyedHead) int {
		return cmp.Or(bytes.Compare(a.key, b.key), a.at-b.at)
	})
	heads, value := room.heads[:0], room.value
	for i, k := range list {
		if i+1 < len(list) && bytes.Equal(k.key, list[i+1].key) {
			continue
		}
		head := &g.heads[k.at]
		heads = append(heads, *head)
		value = layout.AppendHead(value[:0], k.key, head.Head)
		_ = g.batch.Set(k.key, value, nil)
	}
	room.heads = nil // it belongs to the group now
	if len(list) <= maxRoom {
		*room = finishRoom{list: list, keys: buf, heads: g.heads, value: value}
	}
	g.heads = heads
}

// finishRoom is reusable memory for finishing a group. The heads of a group are in
// use until the next group but one is finished, so the engine alternates two rooms.
type finishRoom struct {
	list  []keyedHead
	keys  []byte
	heads []logHead
	value []byte
}

type keyedHead struct {
	key []byte
	at  int
}

// maxRoom bounds the number of heads for which memory is kept.
const maxRoom = 4096

// write passes a batch to Pebble and waits for its sync. These are two calls,
// because Pebble's Apply handles a failed sync by calling the logger's Fatalf and
// returning nil.
func (e *Engine) write(batch *pebble.Batch, sync bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			e.wedged.Store(true)
			err = fmt.Errorf("writing the log of the store: %v", p)
		}
	}()
	if !sync {
		return e.guard.Hand(func() error { return e.db.Apply(batch, pebble.NoSync) })
	}
	if err := e.guard.Hand(func() error { return e.db.ApplyNoSyncWait(batch, pebble.Sync) }); err != nil {
		return err
	}
	if err := batch.SyncWait(); err != nil {
		return fmt.Errorf("syncing the log of the store: %w", err)
	}
	return nil
}

// publish lets readers see a durable group, then ends its tickets and notifies
// the followers.
func (e *Engine) publish(g *group, synced bool, took time.Duration) bool {
	snap := e.db.NewSnapshot()
	e.mu.Lock()
	if e.failure != nil { // too late: its tickets have ended
		e.mu.Unlock()
		_ = snap.Close()
		return false
	}
	old := e.view
	e.view = newView(e, snap, old, g)
	for i := range g.heads {
		head := &g.heads[i]
		e.heads.put(head.log, head.Head)
		if s := &e.sieves.heads; s.told() && head.ID.Incarnation() > old.offset {
			var hash uint64
			hash, e.scratch = s.log(head.log, e.scratch)
			s.add(hash)
		}
	}
	for _, c := range g.claims {
		e.claims.put(c.Name, c.Held, e.view.number)
		if s := &e.sieves.claims; s.told() && c.Held != nil {
			s.add(s.claim(c.Name))
		}
	}
	e.sift(&e.sieves.heads)
	e.sift(&e.sieves.claims)
	if g.last > 0 {
		e.recent.add(g)
		e.book.Settle(g.last)
		e.durable.Store(g.last)
	}
	for _, j := range g.drops {
		j.durable = true
	}
	for _, j := range g.finished {
		e.removed(j)
	}
	if e.flight == g {
		e.flight = nil
	}
	if g.saves {
		e.saving, e.leaving = nil, 0
	}
	if e.unseen != nil {
		close(e.unseen)
		e.unseen = nil
	}
	e.since.Store(0)
	if e.copy == nil {
		e.count(g, synced, took)
	}
	e.wakeAppends()
	e.mu.Unlock()

	g.fate.End(journal.Durable, nil)
	// Yield so that waiters can run before the followers are notified. This
	// shortens their latency; either order is correct.
	runtime.Gosched()
	e.ring(g)
	old.release()
	e.reuse(g)
	return true
}

// count counts a group that has become durable; the lock is held.
func (e *Engine) count(g *group, synced bool, took time.Duration) {
	e.lastCommit.Store(time.Now().UnixNano())
	e.stats.Batches += g.batches
	e.stats.Records += g.records
	e.stats.Bytes += uint64(g.bytes)
	if synced {
		e.stats.Groups++
		e.stats.Syncs++
		e.stats.SyncTimes.Add(took)
	}
	e.stats.Unsynced -= g.bytes
}

func (e *Engine) ring(g *group) {
	if g.last == 0 || (len(g.drops) == 0 && !e.bell.Heard()) {
		return
	}
	logs := make([]journal.LogName, 0, len(g.heads))
	for i := range g.heads {
		logs = append(logs, g.heads[i].log)
	}
	for _, j := range g.drops {
		if j.removal.Whole() {
			e.bell.RingPartition(j.removal.Partition)
		} else {
			logs = append(logs, j.removal.Log)
		}
	}
	e.bell.Ring(logs...)
	if len(g.drops) > 0 {
		signal(e.dropped)
	}
}
