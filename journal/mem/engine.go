// Package mem is a journal engine that keeps everything in memory, for tests.
// It orders, groups and acknowledges as an engine with a disk does, and tests can
// inject faults. It accesses files only in Checkpoint and Restore.
package mem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/internal/follow"
	"github.com/parley-hub/parley/journal/internal/order"
)

// Options configure an engine. The zero value opens a new, empty store.
type Options struct {
	Store       *Store           // nil: a new one
	Shards      int              // of a new store; 0: 1, or as many as Store has
	Now         func() time.Time // nil: time.Now
	MaxUnsynced int64            // ordered bytes that are not durable before Append waits; 0: 16 MiB
}

// Engine is the engine. Its methods are described by journal.Engine.
type Engine struct {
	store  *Store
	now    func() time.Time
	most   int64
	bell   *follow.Bell
	faults Faults

	// All below is guarded by store.mu.
	books  []*order.Book                      // one for each shard
	lazy   map[journal.ValueKey]journal.Value // written since the last sync
	wrote  map[journal.ValueKey]uint64        // offset of the last batch ordered before the lazy write
	group  *group                             // gathering
	stats  journal.Stats
	space  chan struct{} // closed when unsynced bytes shrink
	broken error         // ErrFailed or ErrClosed, with a cause

	wake      chan struct{}
	failed    chan struct{}
	closing   chan struct{}
	done      chan struct{}
	closeOnce sync.Once
}

var _ journal.Engine = (*Engine)(nil)

// group is what becomes durable together.
type group struct {
	fate    *journal.Fate
	last    map[int]uint64 // offset, by shard
	bytes   int64
	batches uint64
	records uint64
	writes  []func()
	logs    []journal.LogName
	drops   []*order.Removal
}

func newGroup() *group { return &group{fate: journal.NewFate(), last: map[int]uint64{}} }

// Open opens an engine on a store.
func Open(opts Options) (*Engine, error) {
	s := opts.Store
	if s == nil {
		s = NewStore()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		return nil, errors.New("mem: another engine is open on this store")
	}
	if err := s.split(opts.Shards); err != nil {
		return nil, err
	}
	s.open = true
	for _, write := range s.limbo {
		write()
	}
	s.limbo = nil
	if s.unindexed {
		s.rebuild()
	}
	e := &Engine{
		store: s, now: opts.Now, most: opts.MaxUnsynced, bell: follow.NewBell(),
		lazy:  map[journal.ValueKey]journal.Value{},
		wrote: map[journal.ValueKey]uint64{},
		group: newGroup(),
		space: make(chan struct{}), wake: make(chan struct{}, 1), failed: make(chan struct{}),
		closing: make(chan struct{}), done: make(chan struct{}),
	}
	if e.now == nil {
		e.now = time.Now
	}
	if e.most == 0 {
		e.most = 16 << 20
	}
	e.faults.init()
	for i, sh := range s.shards {
		at := journal.ShardPosition{Epoch: s.epoch, Offset: uint64(len(sh.commits))}
		book := order.NewBook(base{sh}, i, at, 1)
		for _, r := range sh.removals {
			book.Resume(r)
		}
		e.books = append(e.books, book)
		if len(sh.removals) > 0 {
			e.signal()
		}
	}
	go e.commitLoop()
	return e, nil
}

// Faults returns the handle with which a test holds or fails operations of the engine.
func (e *Engine) Faults() *Faults { return &e.faults }

// Shards implements journal.Engine.
func (e *Engine) Shards() int { return len(e.books) }

// Shard implements journal.Engine.
func (e *Engine) Shard(p journal.PartitionName) int { return journal.ShardOf(p, len(e.books)) }

// of returns the shard of a partition and its book.
func (e *Engine) of(p journal.PartitionName) (*shard, *order.Book) {
	n := e.Shard(p)
	return e.store.shards[n], e.books[n]
}

// Place implements journal.Engine.
func (e *Engine) Place(ctx context.Context, shard int) (journal.Place, error) {
	if err := e.enter(ctx, shard); err != nil {
		return journal.Place{}, err
	}
	defer e.store.mu.Unlock()
	return e.books[shard].Place(), nil
}

// enter locks the engine for a read.
func (e *Engine) enter(ctx context.Context, shard int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if shard < 0 || shard >= len(e.books) {
		return fmt.Errorf("shard %d of %d: %w", shard, len(e.books), journal.ErrInvalid)
	}
	e.store.mu.Lock()
	if errors.Is(e.broken, journal.ErrClosed) {
		defer e.store.mu.Unlock()
		return e.broken
	}
	return nil
}

// Lead implements journal.Engine: the engine orders everything.
func (e *Engine) Lead(int) (mine bool, node string, changed <-chan struct{}) { return true, "", nil }

// Confirm implements journal.Engine.
func (e *Engine) Confirm(ctx context.Context, shard int) error {
	if err := e.enter(ctx, shard); err != nil {
		return err
	}
	defer e.store.mu.Unlock()
	return e.broken
}

// Append implements journal.Engine.
func (e *Engine) Append(ctx context.Context, b journal.Batch) (*journal.Ticket, error) {
	if err := b.Validate(); err != nil {
		return nil, err
	}
	size := int64(b.Size())
	if err := e.enterWrite(ctx, size); err != nil {
		return nil, err
	}
	defer e.store.mu.Unlock()
	n := e.Shard(b.Partition())
	sh := e.store.shards[n]
	plan := new(order.Plan)
	if err := e.books[n].Order(&b, e.group.fate, e.now(), plan); err != nil {
		return nil, err
	}
	kept := clone(&b)
	g := e.group
	g.writes = append(g.writes, func() { sh.append(kept, plan) })
	g.last[n], g.batches = plan.Offset, g.batches+1
	for i := range b.Appends {
		g.logs = append(g.logs, b.Appends[i].Log)
		g.records += uint64(len(b.Appends[i].Records))
	}
	e.grow(size)
	return plan.Ticket, nil
}

// enterWrite locks the engine for a write of the given size, when there is room.
func (e *Engine) enterWrite(ctx context.Context, size int64) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e.store.mu.Lock()
		if e.broken != nil {
			defer e.store.mu.Unlock()
			return e.broken
		}
		if e.stats.Unsynced == 0 || e.stats.Unsynced+size <= e.most {
			return nil
		}
		space := e.space
		e.store.mu.Unlock()
		select {
		case <-space:
		case <-ctx.Done():
		}
	}
}

func (e *Engine) grow(size int64) {
	e.group.bytes += size
	e.stats.Unsynced += size
	e.signal()
}

func (e *Engine) signal() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Drop implements journal.Engine.
func (e *Engine) Drop(ctx context.Context, log journal.LogName) (*journal.Ticket, error) {
	if err := log.Validate(); err != nil {
		return nil, err
	}
	if err := e.enterWrite(ctx, 0); err != nil {
		return nil, err
	}
	defer e.store.mu.Unlock()
	n := e.Shard(log.Of())
	ticket, r, err := e.books[n].DropLog(log, e.group.fate)
	if err != nil || r == nil {
		return ticket, err
	}
	e.drop(n, r)
	return ticket, nil
}

// DropPartition implements journal.Engine.
func (e *Engine) DropPartition(ctx context.Context, p journal.PartitionName, keep ...string) (*journal.Ticket, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := e.enterWrite(ctx, 0); err != nil {
		return nil, err
	}
	defer e.store.mu.Unlock()
	e.store.dropSnapshots(p)
	n := e.Shard(p)
	ticket, r := e.books[n].DropPartition(p, keep, e.group.fate)
	e.drop(n, r)
	return ticket, nil
}

func (e *Engine) drop(n int, r *order.Removal) {
	g, sh := e.group, e.store.shards[n]
	g.writes = append(g.writes, func() {
		sh.drop(r, e.dropsLazy(r))
		if r.Whole() {
			e.store.dropSnapshots(r.Partition)
		}
	})
	g.drops = append(g.drops, r)
	g.last[n] = r.Offset
	e.grow(0)
}

// dropsLazy returns a function that selects the lazy values that a drop removes: those
// of its partition that were written before the drop was ordered.
func (e *Engine) dropsLazy(r *order.Removal) func(journal.ValueKey, journal.Value) bool {
	return func(key journal.ValueKey, _ journal.Value) bool {
		return key.Partition == r.Partition && e.wrote[key] < r.Offset
	}
}

// RebuildIndex implements journal.Engine.
func (e *Engine) RebuildIndex(ctx context.Context) error {
	if err := e.enterWrite(ctx, 0); err != nil {
		return err
	}
	defer e.store.mu.Unlock()
	e.store.rebuild()
	return nil
}

// Health implements journal.Engine.
func (e *Engine) Health() journal.Health {
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	switch {
	case e.broken == nil:
		return journal.Health{State: journal.Ready}
	case errors.Is(e.broken, journal.ErrClosed):
		return journal.Health{State: journal.Closed, Err: e.broken}
	}
	return journal.Health{State: journal.Broken, Err: e.broken}
}

// Failed implements journal.Engine.
func (e *Engine) Failed() <-chan struct{} { return e.failed }

// Stats implements journal.Engine.
func (e *Engine) Stats() journal.Stats {
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	stats := e.stats
	for _, book := range e.books {
		stats.Removals += book.Removals()
	}
	return stats
}
