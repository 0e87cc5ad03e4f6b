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

// adopt lets readers see a group that was applied. Of what others ordered only
// the newest commits are kept in memory, while the shard is followed.
func (e *Engine) adopt(g Group, found layout.GroupContents) error {
	snap := e.db.NewSnapshot()
	last := uint64(0)
	if g.Count > 0 {
		last = g.First + g.Count - 1
	}
	old := e.view
	next := newView(e, snap, old, &group{last: last})
	var commits []journal.Commit
	if !found.Removals {
		commits = next.applied(g)
	}
	e.mu.Lock()
	e.view = next
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
		if commits == nil {
			e.recent.commits, e.recent.bytes = nil, 0
		} else {
			e.recent.add(&group{commits: commits})
		}
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

// applied are the commits of a group with their hints, for those who follow the
// shard; nil when nobody does, or when they cannot be read: who follows then reads
// the store, and finds out.
func (v *view) applied(g Group) (commits []journal.Commit) {
	if g.Count == 0 || uint64(len(g.Hints)) != g.Count || v.engine.recent.following.Load() == 0 {
		return nil
	}
	size := 0
	err := v.eachEntry(g.First, func(offset uint64, en layout.Entry) (bool, error) {
		c, err := v.commit(offset, en, &size)
		if err != nil {
			return false, err
		}
		if hint := g.Hints[offset-g.First]; len(hint) > 0 {
			c.Hint = bytes.Clone(hint)
		}
		commits = append(commits, c)
		return true, nil
	})
	if err != nil {
		return nil
	}
	return commits
}
