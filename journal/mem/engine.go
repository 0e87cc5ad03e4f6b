// Package mem is a journal engine that keeps everything in memory, for tests.
// It orders, groups and acknowledges as an engine with a disk does, and its
// faults can be injected; it never touches a file but in Checkpoint.
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

// Options for an engine. The zero value is a new, empty store.
type Options struct {
	Store       *Store           // nil: a new one
	Now         func() time.Time // nil: time.Now
	MaxUnsynced int64            // bytes ordered and not durable before Append waits; 0: 16 MiB
}

// Engine is the engine. Its methods are described by journal.Engine.
type Engine struct {
	store  *Store
	now    func() time.Time
	most   int64
	bell   *follow.Bell
	faults Faults

	// All below is guarded by store.mu.
	book   *order.Book
	lazy   map[journal.ValueKey]journal.Value // written since the last sync
	wrote  map[journal.ValueKey]uint64        // what was the last batch ordered before a lazy write
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
	last    uint64 // offset
	bytes   int64
	batches uint64
	records uint64
	writes  []func(*Store)
	logs    []journal.LogName
	drops   []*order.Removal
}

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
	s.open = true
	for _, write := range s.limbo {
		write(s)
	}
	s.limbo = nil
	if s.unindexed {
		s.rebuild()
	}
	e := &Engine{
		store: s, now: opts.Now, most: opts.MaxUnsynced, bell: follow.NewBell(),
		lazy:  map[journal.ValueKey]journal.Value{},
		wrote: map[journal.ValueKey]uint64{},
		group: &group{fate: journal.NewFate()},
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
	e.book = order.NewBook(base{s}, 0, journal.ShardPosition{Epoch: s.epoch, Offset: uint64(len(s.commits))}, 1)
	for _, r := range s.removals {
		e.book.Resume(r)
	}
	if len(s.removals) > 0 {
		e.wake <- struct{}{}
	}
	go e.commitLoop()
	return e, nil
}

// Faults lets a test hold or fail what the engine does.
func (e *Engine) Faults() *Faults { return &e.faults }

// Shards is 1.
func (e *Engine) Shards() int { return 1 }

// Shard is 0.
func (e *Engine) Shard(journal.PartitionName) int { return 0 }

// Place implements journal.Engine.
func (e *Engine) Place(ctx context.Context, shard int) (journal.Place, error) {
	if err := e.enter(ctx, shard); err != nil {
		return journal.Place{}, err
	}
	defer e.store.mu.Unlock()
	return e.book.Place(), nil
}

// enter locks the engine for a read.
func (e *Engine) enter(ctx context.Context, shard int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if shard != 0 {
		return fmt.Errorf("shard %d of 1: %w", shard, journal.ErrInvalid)
	}
	e.store.mu.Lock()
	if errors.Is(e.broken, journal.ErrClosed) {
		defer e.store.mu.Unlock()
		return e.broken
	}
	return nil
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
	plan, err := e.book.Order(&b, e.group.fate, e.now())
	if err != nil {
		return nil, err
	}
	kept := clone(&b)
	g := e.group
	g.writes = append(g.writes, func(s *Store) { s.append(kept, plan) })
	g.last, g.batches = plan.Offset, g.batches+1
	for i := range b.Appends {
		g.logs = append(g.logs, b.Appends[i].Log)
		g.records += uint64(len(b.Appends[i].Records))
	}
	e.grow(size)
	return plan.Ticket, nil
}

// enterWrite locks the engine for a write of some size, when there is room.
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
	ticket, r, err := e.book.DropLog(log, e.group.fate)
	if err != nil || r == nil {
		return ticket, err
	}
	e.drop(r)
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
	ticket, r := e.book.DropPartition(p, keep, e.group.fate)
	e.drop(r)
	return ticket, nil
}

func (e *Engine) drop(r *order.Removal) {
	g := e.group
	g.writes = append(g.writes, func(s *Store) { s.drop(r, e.dropsLazy(r)) })
	g.drops = append(g.drops, r)
	g.last = r.Offset
	e.grow(0)
}

// dropsLazy tells the lazy values that a drop removes: those of its partition
// that were written before it was ordered.
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
	stats.Removals = e.book.Removals()
	return stats
}
