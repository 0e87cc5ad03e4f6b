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
// fillEach how long for each of them: most come back at once, and then share a sync.
// Waiting longer for one would only use a processor.
const (
	fillTime = 100 * time.Microsecond
	fillEach = 20 * time.Microsecond
)

// After fillMisses waits without a result the committer waits only every fillProbe-th time.
const (
	fillMisses = 4
	fillProbe  = 16
)

// commitLoop is the one committer: it takes what was gathered during the last
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
				_ = e.settle() // a task is told when the engine has failed
				task(nil)
			default:
			}
		}
	}
	e.refuseTasks()
}

// refuseTasks answers those who asked too late.
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

// fill waits for as many batches as were just released, but not for long. It
// yields rather than sleeps, because a timer would oversleep. Where nobody came
// back the last times, it seldom waits: that only takes the processor from others.
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
// it; without a group they are taken only when they are due.
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
		e.lookAgain() // a group has only so much room
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

// commit makes a group durable, however that is done, and visible. It reports
// whether the engine goes on.
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

// finish adds what is written once for the group. Keys of one kind are sorted,
// because Pebble inserts sorted keys faster.
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
	if len(list) <= maxRoom {
		*room = finishRoom{list: list, keys: buf, heads: g.heads, value: value}
	}
	g.heads = heads
}

// finishRoom is memory that finishing a group needs; the next group uses it again.
// The heads of a group are in use until the next but one is finished.
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

// write hands a batch to Pebble and waits for its sync. These are two calls
// because Pebble's Apply answers a failed sync by calling the logger's Fatalf and
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

// publish lets readers see a durable group, then tells those who wait for it.
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
	e.lookAgain()
	e.mu.Unlock()

	g.fate.End(journal.Durable, nil)
	// Waiters run before the followers are rung where that costs nothing: it
	// shortens their latency, and neither order is wrong.
	runtime.Gosched()
	e.ring(g)
	old.release()
	e.reuse(g.batch)
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
