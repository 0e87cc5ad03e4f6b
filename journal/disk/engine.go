// Package disk is the embedded journal engine: one Pebble database, one
// committer that makes everything that arrived during the last sync durable
// with the next one, and a snapshot after each sync through which all reads go.
// It never shows what is not synced, and never continues after its disk failed.
package disk

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/compaction"
	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/store"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
	"github.com/parley-hub/parley/journal/internal/follow"
	"github.com/parley-hub/parley/journal/internal/order"
)

// Engine is the engine. Its methods are described by journal.Engine.
type Engine struct {
	opts      Options
	shard     int
	persist   func(g *group, synced bool) bool // makes a group durable and visible; returns whether the engine goes on
	copy      *copying                         // nil: the store is not a copy
	openGuard *storefs.OpenGuard               // while the store is being opened
	dir       string
	db        *pebble.DB
	guard     *storefs.Guard
	lock      io.Closer
	bell      *follow.Bell

	compactions *compaction.Scheduler
	snapshots   *snapshots

	epoch uint64
	found store.Recovery
	mark  *datadir.Marker // used by the marker's goroutine, and by Close after it

	opened     storefs.Opened
	checkedLog storefs.File // of the committer: the log that was written when it last checked the files
	checkedAt  time.Time    // and when that was

	finishing [2]finishRoom // of the committer, used in turn

	missed   uint      // of the committer: how many waits in a row no batch arrived in
	measured time.Time // of the committer: when it last measured the free space
	tight    bool      // of the committer: the disk was nearly full then

	mu      sync.Mutex // never held during a write or a sync
	book    *order.Book
	plan    order.Plan // of the batch that is being ordered
	view    *view      // what readers see
	heads   *cache[journal.LogName, order.Head]
	claims  claimTable
	sieves  struct{ heads, claims sieve }
	recent  recent
	group   *group                       // gathering
	flight  *group                       // being made durable; nil when none is
	unseen  chan struct{}                // of a copy: closed when readers see the group that has just become durable; nil: they see all
	spare   atomic.Pointer[pebble.Batch] // of a group that has ended
	spares  atomic.Pointer[[]logHead]    // of a group that has ended: room for the heads of another
	lazy    map[journal.ValueKey]journal.Value
	saving  map[journal.ValueKey]journal.Value // lazy values of the group in flight
	lazyDue bool                               // lazy values are to be saved without a group
	dirty   int64                              // bytes of lazy, at most
	leaving int64                              // bytes of saving, at most
	jobs    []*job                             // removals, oldest first
	waiting int                                // appends that wait for room
	room    chan struct{}                      // closed when they should check again
	paused  bool                               // the index is being rebuilt
	full    error                              // ErrNoSpace while the disk is nearly full
	notMine error                              // of a copy: *NotMineError while another process orders
	failure error                              // ErrFailed, with the cause
	closed  bool
	stats   journal.Stats
	scratch []byte

	gathered atomic.Int64  // batches in group, read by the committer without the lock
	since    atomic.Int64  // when the flight began, in nanoseconds; 0: none
	tasked   atomic.Int64  // when the task between groups last made progress; 0: none
	stalled  atomic.Int64  // when Pebble began to hold writes back
	wedged   atomic.Bool   // Pebble stopped in the middle of a call and must not be called again
	durable  atomic.Uint64 // last durable offset, for MARK
	backups  atomic.Uint64 // made so far, to name them

	lastCommit atomic.Int64 // when the last group became durable, in nanoseconds

	wake     chan struct{}    // for the committer
	dropped  chan struct{}    // for the remover
	rotated  chan struct{}    // for the marker
	trouble  chan error       // for the keeper
	tasks    chan func(error) // for the committer, between groups
	failed   chan struct{}
	stop     chan struct{} // for all but the keeper
	stopped  chan struct{} // for the keeper, which stops last
	kept     chan struct{} // closed when the keeper has ended
	readers  sync.WaitGroup
	helpers  sync.WaitGroup // marker, remover, tidier
	done     chan struct{}  // closed when the committer has ended
	closing  sync.Once
	closeErr error
}

var _ journal.Engine = (*Engine)(nil)

// group is what one sync makes durable.
type group struct {
	fate     *journal.Fate
	batch    *pebble.Batch
	last     uint64 // offset; 0: no batch, only upkeep
	bytes    int64
	batches  uint64
	records  uint64
	heads    []logHead
	entries  layout.EntryList
	commits  []journal.Commit    // for followers of the shard; those ordered while there were any
	claims   []order.ClaimChange // in the order they were made
	drops    []*job
	finished []*job
	hints    [][]byte                      // of the batches, for processes that apply the group; only in a copy
	confirm  bool                          // a caller waits for the group, even if it is empty
	saves    bool                          // lazy values are saved with it
	dropped  map[journal.ValueKey]struct{} // lazy values in memory that a drop of this group removes
}

// newGroup returns an empty group.
func (e *Engine) newGroup() *group {
	batch := e.spare.Swap(nil)
	if batch == nil {
		batch = e.db.NewBatch(pebble.WithMaxRetainedSizeBytes(spareBytes))
	}
	g := &group{fate: journal.NewFate(), batch: batch}
	if heads := e.spares.Swap(nil); heads != nil {
		g.heads = *heads
	}
	return g
}

const spareBytes = 4 << 20

// reuse keeps the batch and the room for heads of a group that has ended for the next
// one: a batch grows by doubling and copying, and Pebble's own pool is emptied by the
// garbage collector. Reset frees a buffer larger than spareBytes.
func (e *Engine) reuse(g *group) {
	g.batch.Reset()
	if !e.spare.CompareAndSwap(nil, g.batch) {
		_ = g.batch.Close()
	}
	if len(g.heads) <= maxRoom {
		clear(g.heads)
		heads := g.heads[:0]
		e.spares.Store(&heads)
	}
	g.heads = nil
}

// logHead is where a log ends. Until a group is finished, its list may contain a
// log more than once; the last entry counts.
type logHead struct {
	log journal.LogName
	order.Head
}

func (g *group) addHead(log journal.LogName, head order.Head) {
	if n := len(g.heads); n > 0 && g.heads[n-1].log == log {
		g.heads[n-1].Head = head
		return
	}
	g.heads = append(g.heads, logHead{log, head})
}

// empty reports whether there is nothing to commit. A group with the end of a
// removal is not empty, even if it writes nothing: the remover waits for it.
func (g *group) empty() bool { return g.batch.Empty() && len(g.finished) == 0 && !g.confirm }

// Shards returns 1.
func (e *Engine) Shards() int { return 1 }

// Shard returns the only shard: 0, unless the store is a copy.
func (e *Engine) Shard(journal.PartitionName) int { return e.shard }

// Place implements journal.Engine.
func (e *Engine) Place(ctx context.Context, shard int) (journal.Place, error) {
	if err := e.checkShard(ctx, shard); err != nil {
		return journal.Place{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.awaitSeen(ctx); err != nil {
		return journal.Place{}, err
	}
	if e.closed {
		return journal.Place{}, journal.ErrClosed
	}
	return e.book.Place(), nil
}

// refusal returns the error for an append, or nil; the lock is held.
func (e *Engine) refusal() error {
	if err := e.refusedUpkeep(); err != nil {
		return err
	}
	return e.full
}

// refusedUpkeep returns the error for a write that frees space, or nil; the lock is held.
func (e *Engine) refusedUpkeep() error {
	if err := e.ended(); err != nil {
		return err
	}
	return e.notMine
}

// refusedLocally returns the error for work that needs space and affects only this
// store, or nil; the lock is held.
func (e *Engine) refusedLocally() error {
	if err := e.ended(); err != nil {
		return err
	}
	return e.full
}

// ended returns the error for work that frees space or must be possible when there is
// little, or nil; the lock is held.
func (e *Engine) ended() error {
	if e.closed {
		return journal.ErrClosed
	}
	return e.failure
}

// refusedDrop is refusedUpkeep for callers that do not hold the lock.
func (e *Engine) refusedDrop() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refusedUpkeep()
}

// refused is refusal for callers that do not hold the lock.
func (e *Engine) refused() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refusal()
}

func (e *Engine) checkShard(ctx context.Context, shard int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if shard != e.shard {
		return fmt.Errorf("shard %d, the store has only shard %d: %w", shard, e.shard, journal.ErrInvalid)
	}
	return nil
}

// Lead implements journal.Engine: a store that is not a copy orders everything.
func (e *Engine) Lead(int) (mine bool, node string, changed <-chan struct{}) { return true, "", nil }

// Health implements journal.Engine.
func (e *Engine) Health() journal.Health {
	e.mu.Lock()
	defer e.mu.Unlock()
	health := journal.Health{Err: e.refusal()}
	switch {
	case e.closed:
		health.State = journal.Closed
	case e.failure != nil:
		health.State = journal.Broken
	case e.notMine != nil:
		health.State = journal.Waiting
	case e.full != nil:
		health.State = journal.Full
	}
	return health
}

// Failed implements journal.Engine.
func (e *Engine) Failed() <-chan struct{} { return e.failed }

// Stats implements journal.Engine.
func (e *Engine) Stats() journal.Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	stats := e.stats
	stats.Removals = e.book.Removals()
	return stats
}

// Recovery returns what opening found.
func (e *Engine) Recovery() store.Recovery { return e.found }

// now returns the time that decides which claims have expired.
func (e *Engine) now() time.Time { return e.opts.Now() }

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
