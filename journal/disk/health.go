package disk

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
)

// keepInterval is how often the keeper checks the engine.
const keepInterval = 200 * time.Millisecond

// fail ends the engine for good: the group in flight ends unknown, the gathering
// group aborted, and nothing more is admitted.
func (e *Engine) fail(cause error) {
	e.mu.Lock()
	if e.failure != nil {
		e.mu.Unlock()
		return
	}
	datadir.Poison(e.opts.FS, e.dir, cause)
	if e.guard.Handing() {
		e.wedged.Store(true) // Pebble is in the middle of a call that may never return
	}
	failure := fmt.Errorf("%w: %w", journal.ErrFailed, cause)
	e.failure = failure
	flight, behind := e.flight, e.group
	e.flight = nil
	e.group = &group{fate: journal.NewFate(), batch: new(pebble.Batch)} // stays empty
	e.book.Forget()
	e.stats.Unsynced = 0
	e.wakeAppends()
	close(e.failed)
	e.mu.Unlock()

	e.opts.Logger.Error("the journal has failed", "error", cause)
	if flight != nil {
		flight.fate.End(journal.Unknown, failure)
	}
	behind.fate.End(journal.Aborted, failure)
	e.bell.Close(failure)
}

// noRoom fails a group before it is handed to Pebble when the disk is nearly
// full, and aborts the gathering group. The engine continues from what is
// durable.
func (e *Engine) noRoom(g *group) bool {
	if !e.crowded() {
		return false
	}
	if !e.settle() {
		return true
	}
	e.mu.Lock()
	cause := e.full
	e.mu.Unlock()
	e.forget(g, journal.Failed, cause)
	return true
}

// forget ends a group that is not durable, if there is one, and aborts the
// gathering one. It runs on the committer.
func (e *Engine) forget(g *group, outcome journal.Outcome, cause error) {
	e.mu.Lock()
	behind := e.group
	e.group = e.newGroup()
	e.gathered.Store(0)
	e.flight = nil
	e.since.Store(0)
	e.jobs = durableJobs(e.jobs)
	for key, v := range e.saving { // lazy values are saved again
		if _, newer := e.lazy[key]; !newer {
			e.lazy[key] = v
		}
	}
	e.saving = nil
	e.dirty, e.leaving = e.dirty+e.leaving, 0
	e.book.Forget()
	e.stats.Unsynced = 0
	e.wakeAppends()
	e.mu.Unlock()
	if g != nil {
		g.fate.End(outcome, cause)
		_ = g.batch.Close()
	}
	behind.fate.End(journal.Aborted, cause)
	_ = behind.batch.Close()
}

// crowded reports whether the disk is nearly full. While there is space, it measures
// only every measureEvery, because the system call is slow: less than MinFree can
// be written in that time.
func (e *Engine) crowded() bool {
	now := time.Now()
	if e.tight || now.Sub(e.measured) >= e.opts.measureEvery {
		e.measured = now
		e.tight = e.measureRoom(e.opts.MinFree / 4)
	}
	return e.tight
}

func durableJobs(jobs []*job) []*job {
	var left []*job
	for _, j := range jobs {
		if j.durable {
			left = append(left, j)
		}
	}
	return left
}

// measureRoom measures the free space on the disk, refuses or admits appends
// accordingly, and reports whether there is less than bound.
func (e *Engine) measureRoom(bound int64) bool {
	if e.opts.MinFree < 0 {
		return false
	}
	usage, err := e.opts.FS.GetDiskUsage(e.dir)
	if err != nil {
		return false // a file system that cannot report it counts as having room
	}
	free := int64(min(usage.AvailBytes, 1<<62))
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.full
	e.full = nil
	if free < e.opts.MinFree {
		e.full = fmt.Errorf("%w: %d MiB are free, at least %d MiB are needed",
			journal.ErrNoSpace, free>>20, e.opts.MinFree>>20)
		e.wakeAppends()
	}
	if (was == nil) != (e.full == nil) {
		e.opts.Logger.Warn("room on the disk changed", "free", free, "appends refused", e.full != nil)
	}
	return free < bound
}

// keepLoop fails the engine on errors that no caller waits for. It calls nothing
// that a failing store could block.
func (e *Engine) keepLoop() {
	defer close(e.kept)
	ticker := time.NewTicker(keepInterval)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case err := <-e.trouble:
			e.fail(err)
		case <-ticker.C:
			e.watch()
			if n%5 == 0 {
				e.measureRoom(0)
				e.saveLazySoon()
			}
			if n%50 == 0 {
				signal(e.dropped)
			}
		case <-e.stopped:
			return
		}
	}
}

// tidyLoop does work that can wait: it sweeps claims, closes iterators that a quiet
// engine would keep open, and checks the files even if nothing is written.
func (e *Engine) tidyLoop() {
	defer e.helpers.Done()
	ticker := time.NewTicker(5 * keepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			e.sweepClaims()
			e.closeSeekers()
			if err := e.opened.Check(); err != nil && !e.ending() {
				e.report(err)
			}
		case <-e.stop:
			return
		}
	}
}

// Compactions wait until no batch has arrived for quietAfter, unless mostRuns or
// mostOverdue is reached.
const (
	quietAfter  = 100 * time.Millisecond
	mostRuns    = 10 // tables to read for one key, in addition to the levels
	mostOverdue = 1 << 30
)

// busy reports whether batches are arriving.
func (e *Engine) busy() bool {
	return time.Duration(time.Now().UnixNano()-e.lastCommit.Load()) < quietAfter
}

// backlog reports whether compactions cannot wait.
func (e *Engine) backlog() bool {
	if e.wedged.Load() {
		return false
	}
	m := e.db.Metrics()
	return m.Levels[0].Sublevels >= mostRuns || m.Compact.EstimatedDebt >= mostOverdue
}

// watch fails the engine when its disk does not respond in time.
func (e *Engine) watch() {
	now := time.Now().UnixNano()
	if at := e.stalled.Load(); at != 0 && time.Duration(now-at) > e.opts.StallLimit {
		e.fail(fmt.Errorf("the store has held writes back for over %v", e.opts.StallLimit))
	}
	if at := e.since.Load(); at != 0 && time.Duration(now-at) > e.opts.SyncLimit {
		e.wedged.Store(true)
		e.fail(fmt.Errorf("a commit has taken more than %v", e.opts.SyncLimit))
	}
	if at := e.tasked.Load(); at != 0 && time.Duration(now-at) > e.opts.SyncLimit {
		e.wedged.Store(true)
		e.fail(fmt.Errorf("a checkpoint or a rebuild of the index made no progress for over %v", e.opts.SyncLimit))
	}
}

// gotOn records that the task between groups makes progress, for the keeper.
func (e *Engine) gotOn() {
	if at := e.tasked.Load(); at != 0 {
		e.tasked.CompareAndSwap(at, time.Now().UnixNano())
	}
}

func (e *Engine) saveLazySoon() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.lazy) > 0 {
		e.lazyDue = true
		signal(e.wake)
	}
}

// report passes an error to the keeper, which fails the engine. Pebble's
// callbacks use it, because they run with locks held.
func (e *Engine) report(err error) {
	select {
	case e.trouble <- err:
	default: // the keeper has an error already
	}
}

// trip reports an error after which Pebble cannot be used: to the guard while
// the store is being opened, otherwise to the keeper.
func (e *Engine) trip(err error) {
	if !e.openGuard.Fail(err) {
		e.report(err)
	}
}

// ending reports whether the engine is closed or failed.
func (e *Engine) ending() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed || e.failure != nil
}

// events returns the listener for the Pebble events that the engine handles.
func (e *Engine) events() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			e.compactions.Halt()
			e.trip(fmt.Errorf("flushing or compacting: %w", layout.StoreError(err)))
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			e.compactions.Halt()
			e.report(layout.Damaged(info.Details, "%s", filepath.Base(info.Path)))
		},
		WALCreated:      func(pebble.WALCreateInfo) { signal(e.rotated) },
		WriteStallBegin: func(pebble.WriteStallBeginInfo) { e.stalled.CompareAndSwap(0, time.Now().UnixNano()) },
		WriteStallEnd:   func() { e.stalled.Store(0) },
	}
}
