package disk

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/internal/order"
)

// recent holds the newest durable commits while the shard has followers, so that a
// follower that keeps up does not read the store. Its commits are consecutive, and
// of logs that were not dropped since. All fields but following are guarded by the
// engine's lock.
type recent struct {
	following atomic.Int64 // followers of the shard
	limit     int64        // bytes
	commits   []journal.Commit
	bytes     int64
}

// commitOverhead is the memory that a commit takes besides the data of its records.
const commitOverhead = 256

func recentSize(c *journal.Commit) int64 {
	size := int64(commitOverhead + len(c.Hint))
	for i := range c.Writes {
		for j := range c.Writes[i].Entries {
			size += int64(len(c.Writes[i].Entries[j].Data))
		}
	}
	return size
}

// copyRecords copies the data of a batch's records if the shard has followers.
func (r *recent) copyRecords(b *journal.Batch) [][]byte {
	if r.following.Load() == 0 {
		return nil
	}
	data := [][]byte{}
	for i := range b.Appends {
		for j := range b.Appends[i].Records {
			data = append(data, bytes.Clone(b.Appends[i].Records[j].Data))
		}
	}
	return data
}

// commitOf returns an ordered batch as followers see it.
func commitOf(b *journal.Batch, data [][]byte, plan *order.Plan) journal.Commit {
	c := journal.Commit{Position: journal.ShardPosition{Epoch: plan.Ticket.Epoch(), Offset: plan.Offset}}
	if len(b.Appends) > 0 {
		c.Writes = make([]journal.Write, len(b.Appends))
	}
	for i := range b.Appends {
		w := &c.Writes[i]
		w.Log, w.Incarnation = b.Appends[i].Log, plan.Heads[i].ID.Incarnation()
		w.First, w.Last = plan.First(i), plan.Heads[i].Seq
		w.Entries = make([]journal.Entry, len(b.Appends[i].Records))
		for j := range w.Entries {
			w.Entries[j] = journal.Entry{Seq: w.First + uint64(j), Offset: plan.Offset, Data: data[j]}
		}
		data = data[len(w.Entries):]
	}
	for i := range b.Values {
		c.Values = append(c.Values, b.Values[i].Key)
	}
	c.Hint = bytes.Clone(b.Hint)
	return c
}

// add adds the commits of a group that became durable.
func (r *recent) add(g *group) {
	if r.following.Load() == 0 || len(g.drops) > 0 {
		r.commits, r.bytes = nil, 0
		return
	}
	for i := range g.commits {
		c := &g.commits[i]
		if n := len(r.commits); n > 0 && r.commits[n-1].Position.Offset+1 != c.Position.Offset {
			r.commits, r.bytes = nil, 0
		}
		r.commits = append(r.commits, *c)
		r.bytes += recentSize(c)
	}
	oldest := 0
	for r.bytes > r.limit {
		r.bytes -= recentSize(&r.commits[oldest])
		oldest++
	}
	clear(r.commits[:oldest])
	r.commits = r.commits[oldest:]
}

// after returns at most a page of commits after an offset, or none if the next
// commit is not in memory.
func (r *recent) after(offset uint64) []journal.Commit {
	if len(r.commits) == 0 || offset+1 < r.commits[0].Position.Offset {
		return nil
	}
	from := offset + 1 - r.commits[0].Position.Offset
	if from >= uint64(len(r.commits)) {
		return nil
	}
	rest, size := r.commits[from:], int64(0)
	for i := range rest {
		size += recentSize(&rest[i])
		if i+1 == journal.DefaultPageEntries || size >= journal.DefaultPageBytes {
			rest = rest[:i+1]
			break
		}
	}
	return append([]journal.Commit(nil), rest...)
}

// shardFollower is a follower that is counted in recent.following.
type shardFollower struct {
	journal.ShardFollower
	recent *recent
	once   sync.Once
}

func (f *shardFollower) Close() {
	f.once.Do(func() { f.recent.following.Add(-1) })
	f.ShardFollower.Close()
}
