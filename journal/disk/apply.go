package disk

import (
	"bytes"
	"fmt"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/internal/order"
)

// Apply writes a group that another process shipped, and lets readers see it. A
// group that is not one, or is not the next, is refused with ErrInvalid and
// changes nothing.
func (c *Copy) Apply(g Group, at Place) error {
	e := c.Engine
	if g.Count > 0 && g.First != e.view.offset+1 {
		return fmt.Errorf("a group begins at offset %d, the copy ends at %d: %w", g.First, e.view.offset, journal.ErrInvalid)
	}
	found, err := layout.CheckGroup(g.Batch, g.First, g.Count, func(p journal.PartitionName) bool {
		return journal.ShardOf(p, e.copy.shards) == e.shard
	})
	if err != nil {
		return fmt.Errorf("a group of offset %d: %w: %w", g.First, journal.ErrInvalid, err)
	}
	batch := e.db.NewBatch()
	defer batch.Close() //nolint:errcheck // never fails
	if err := batch.SetRepr(bytes.Clone(g.Batch)); err != nil {
		return fmt.Errorf("a group of offset %d: %w: %w", g.First, journal.ErrInvalid, err)
	}
	if err := e.writeAt(batch, at); err != nil {
		return c.failing(err)
	}
	return c.failing(e.adopt(g, found))
}

// adopt lets readers see a group that was applied. Nothing is kept in memory of
// what others ordered: it is read when it is asked for.
func (e *Engine) adopt(g Group, found layout.GroupContents) error {
	snap := e.db.NewSnapshot()
	e.mu.Lock()
	old := e.view
	last := uint64(0)
	if g.Count > 0 {
		last = g.First + g.Count - 1
	}
	e.view = newView(e, snap, old, &group{last: last})
	var err error
	if found.Removals {
		e.view.hidden, err = e.renew(e.view, e.book.Place().Term)
	}
	if len(e.heads.young)+len(e.heads.old) > 0 {
		e.heads = newCache[journal.LogName, order.Head](headCache)
	}
	if len(e.claims.young)+len(e.claims.old) > 0 {
		e.claims.reset(e.view.number)
	} else {
		e.claims.turned, e.claims.known = e.view.number, e.view.number
	}
	if last > 0 {
		e.book.Advance(last)
		e.durable.Store(last)
		e.recent.commits, e.recent.bytes = nil, 0
	}
	e.stats.Batches += g.Count
	e.mu.Unlock()
	old.release()
	for _, p := range found.Dropped {
		e.bell.RingPartition(p)
	}
	e.bell.Ring(found.Logs...)
	return err
}
