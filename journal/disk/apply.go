package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/internal/order"
)

// placeRoom is the number of bytes reserved for the place that is written with a group.
const placeRoom = 128

// run is a sequence of shipped groups that are written in one commit, because a copy
// that is behind has many groups to write.
type run struct {
	at     Place // of the last group
	last   uint64
	count  uint64
	size   int // of the groups' batches
	groups []Group
	found  layout.GroupContents // without Heads
}

// runBytes is the maximum size of a run of several groups.
const runBytes = 1 << 20

// repr returns one Pebble batch with the operations of all groups. Of several
// operations on the head of one log it has the last one only, because they are half of
// all operations, and a copy that is behind would write most of them in vain.
func (r *run) repr() []byte {
	repr, ops := append(make([]byte, 0, r.size+placeRoom), r.groups[0].Batch[:layout.BatchHeader]...), uint32(0)
	final := map[string]struct{}{}
	heads := make([][]layout.HeadOp, len(r.groups)) // of each group, that are not final
	for i := len(r.groups) - 1; i >= 0 && len(r.groups) > 1; i-- {
		for _, op := range slices.Backward(r.groups[i].found.Heads) {
			if _, later := final[string(op.Key)]; later {
				heads[i] = append(heads[i], op)
			} else if i > 0 {
				final[string(op.Key)] = struct{}{}
			}
		}
	}
	for i, g := range r.groups {
		from := layout.BatchHeader
		for _, op := range slices.Backward(heads[i]) {
			repr, from = append(repr, g.Batch[from:op.From]...), op.To
		}
		repr = append(repr, g.Batch[from:]...)
		ops += binary.LittleEndian.Uint32(g.Batch[layout.BatchHeader-4:]) - uint32(len(heads[i]))
	}
	binary.LittleEndian.PutUint32(repr[layout.BatchHeader-4:], ops)
	return repr
}

// Apply writes a group that another process shipped, and lets readers see it. If
// the group is malformed or is not the next one, Apply returns ErrInvalid and
// changes nothing.
func (c *Copy) Apply(g Group, at Place) error {
	if err := c.Gather(g, at); err != nil {
		return err
	}
	return c.Flush()
}

// Check validates a group that another process shipped, so that Gather does not
// have to. It may be called at any time. It returns ErrInvalid if the group is malformed.
func (c *Copy) Check(g *Group) error {
	found, err := layout.CheckGroup(g.Batch, g.First, g.Count, func(p journal.PartitionName) bool {
		return journal.ShardOf(p, c.copy.shards) == c.shard
	})
	if err != nil {
		return fmt.Errorf("a group of offset %d: %w: %w", g.First, journal.ErrInvalid, err)
	}
	g.found = &found
	return nil
}

// Gather is like Apply, but may delay the write until Flush. The function passed to
// Exclusively must call Flush before it returns.
func (c *Copy) Gather(g Group, at Place) error {
	e, r := c.Engine, &c.copy.run
	if end := max(e.view.offset, r.last); g.Count > 0 && g.First != end+1 {
		return fmt.Errorf("a group begins at offset %d, the copy ends at %d: %w", g.First, end, journal.ErrInvalid)
	}
	if g.found == nil {
		if err := c.Check(&g); err != nil {
			return err
		}
	}
	found := g.found
	if r.size+len(g.Batch) > runBytes {
		if err := c.Flush(); err != nil {
			return err
		}
	}
	r.size += len(g.Batch)
	r.at = at
	if g.Count > 0 {
		r.last = g.First + g.Count - 1
	}
	r.count += g.Count
	r.groups = append(r.groups, g)
	r.found.Logs = append(r.found.Logs, found.Logs...)
	r.found.Dropped = append(r.found.Dropped, found.Dropped...)
	r.found.Removals = r.found.Removals || found.Removals
	return nil
}

// Flush writes the gathered groups in one commit, and lets readers see them.
func (c *Copy) Flush() error {
	e, r := c.Engine, c.copy.run
	if len(r.groups) == 0 {
		return nil
	}
	c.copy.run = run{}
	batch := e.db.NewBatch()
	defer batch.Close() //nolint:errcheck // never fails
	if err := batch.SetRepr(r.repr()); err != nil {
		return fmt.Errorf("groups up to offset %d: %w: %w", r.last, journal.ErrInvalid, err)
	}
	e.copy.at = r.at
	if err := e.writeAt(batch, r.at); err != nil {
		return c.failing(err)
	}
	return c.failing(e.adopt(&r))
}

// adopt lets readers see groups that were applied. Of groups that other processes
// ordered, only the newest commits are kept in memory, and only while the shard is
// followed.
func (e *Engine) adopt(r *run) error {
	snap := e.db.NewSnapshot()
	last, found := r.last, r.found
	old := e.view
	next := newView(e, snap, old, &group{last: last})
	var commits []journal.Commit
	if !found.Removals {
		commits = next.appliedAll(r.groups)
	}
	e.mu.Lock()
	e.view = next
	var err error
	if found.Removals {
		e.view.hidden, err = e.renew(e.view, e.book.Place().Term)
	}
	e.sieves.heads.forget()
	e.sieves.claims.forget()
	if len(e.heads.young)+len(e.heads.old) > 0 {
		e.heads = newCache[journal.LogName, order.Head](e.opts.recentHeads)
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
	e.stats.Batches += r.count
	if r.count > 0 {
		e.lastCommit.Store(time.Now().UnixNano()) // compactions wait, as in a store that writes
	}
	e.mu.Unlock()
	old.release()
	for _, p := range found.Dropped {
		e.bell.RingPartition(p)
	}
	e.bell.Ring(found.Logs...)
	return err
}

// appliedAll returns the commits of consecutive groups, or nil unless the commits of
// every group are known.
func (v *view) appliedAll(groups []Group) (commits []journal.Commit) {
	for _, g := range groups {
		if g.Count == 0 {
			continue
		}
		some := v.applied(g)
		if some == nil {
			return nil
		}
		commits = append(commits, some...)
	}
	return commits
}

// applied returns the commits of a group with their hints, for followers of the
// shard. It returns nil if there are no followers or if the commits cannot be read:
// the followers then read the store and get the error.
func (v *view) applied(g Group) (commits []journal.Commit) {
	if uint64(len(g.Hints)) != g.Count || v.engine.recent.following.Load() == 0 {
		return nil
	}
	size := 0
	err := v.eachEntry(g.First, func(offset uint64, en layout.Entry) (bool, error) {
		if offset-g.First >= g.Count {
			return false, nil
		}
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
