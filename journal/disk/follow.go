package disk

import (
	"context"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/internal/follow"
)

// Follow implements journal.Engine.
func (e *Engine) Follow(ctx context.Context, log journal.LogName, after journal.Position) (journal.Follower, error) {
	if err := log.Validate(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return follow.Log(e, e.bell, e.shard, log, after), nil
}

// FollowShard implements journal.Engine.
func (e *Engine) FollowShard(ctx context.Context, shard int, after journal.ShardPosition) (journal.ShardFollower, error) {
	if err := e.checkShard(ctx, shard); err != nil {
		return nil, err
	}
	e.recent.following.Add(1)
	return &shardFollower{ShardFollower: follow.Shard(e, e.bell, shard, after), recent: &e.recent}, nil
}

// Commits returns at most a page of durable commits after an offset. Followers
// call it.
func (e *Engine) Commits(ctx context.Context, shard int, after uint64) ([]journal.Commit, error) {
	v, commits, err := e.enterCommits(ctx, shard, after)
	if err != nil {
		return nil, err
	}
	defer v.leave()
	if commits != nil {
		return commits, nil
	}
	size := 0
	err = v.eachEntry(after+1, func(offset uint64, en layout.Entry) (bool, error) {
		c, err := v.commit(offset, en, &size)
		if err != nil {
			return false, err
		}
		commits = append(commits, c)
		return len(commits) < journal.DefaultPageEntries && size < journal.DefaultPageBytes, nil
	})
	return commits, err
}

// enterCommits begins a read, and returns the commits after an offset if they are
// held in memory.
func (e *Engine) enterCommits(ctx context.Context, shard int, after uint64) (*view, []journal.Commit, error) {
	if err := e.checkShard(ctx, shard); err != nil {
		return nil, nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	v, err := e.enterSeen(ctx)
	if err != nil {
		return nil, nil, err
	}
	return v, e.recent.after(after), nil
}

// eachEntry calls each for the entries of commits from an offset on. It returns an
// error if one is missing.
func (v *view) eachEntry(from uint64, each func(offset uint64, en layout.Entry) (bool, error)) error {
	it, err := v.iter(layout.CommitKey(nil, from), []byte{layout.KindCommit + 1})
	if err != nil {
		return err
	}
	defer it.Close() //nolint:errcheck // read errors are looked at below
	want := from
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return layout.StoreError(err)
		}
		for offset, decode := range layout.DecodeEntries(it.Key(), value) {
			if offset != 0 && offset < want {
				continue
			}
			en, err := decode()
			if err != nil {
				return layout.Damaged(err, "the entry of commit %d", want)
			}
			if offset != want {
				return layout.Damaged(nil, "the entry of commit %d is missing; it", want)
			}
			if more, err := each(offset, en); err != nil || !more {
				return err
			}
			want++
		}
	}
	return layout.StoreError(it.Error())
}

func (v *view) commit(offset uint64, en layout.Entry, size *int) (journal.Commit, error) {
	c := journal.Commit{Position: journal.ShardPosition{Epoch: v.engine.epoch, Offset: offset}}
	switch en.Kind {
	case layout.EntryDropLog:
		c.DroppedLog = &en.Log
	case layout.EntryDropPartition:
		c.DroppedPartition = &en.Partition
	}
	for _, name := range en.Values {
		c.Values = append(c.Values, journal.ValueKey{Partition: en.Partition, Name: name})
	}
	for _, w := range en.Writes {
		out := journal.Write{Incarnation: w.ID.Incarnation(), First: w.First, Last: w.Last()}
		log, found, err := v.name(w.ID)
		if err != nil {
			return c, err
		}
		out.Log = log
		if _, gone := v.hidden[w.ID]; gone || !found {
			out.Dropped = true
			c.Writes = append(c.Writes, out)
			continue
		}
		all := journal.Limits{Entries: journal.MaxBatchRecords, Bytes: journal.MaxBatchBytes}
		out.Entries, _, err = v.records(log, w.ID, w.First, w.Last(), false, all)
		if err != nil {
			return c, err
		}
		for i := range out.Entries {
			*size += len(out.Entries[i].Data)
		}
		c.Writes = append(c.Writes, out)
	}
	return c, nil
}
