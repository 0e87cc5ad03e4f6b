package disk

import (
	"context"
	"encoding/binary"

	"github.com/parley-hub/parley/journal"
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
	return follow.Log(e, e.bell, 0, log, after), nil
}

// FollowShard implements journal.Engine.
func (e *Engine) FollowShard(ctx context.Context, shard int, after journal.ShardPosition) (journal.ShardFollower, error) {
	if err := checkShard(ctx, shard); err != nil {
		return nil, err
	}
	return follow.Shard(e, e.bell, shard, after), nil
}

// Commits returns durable commits after an offset, at most a page. Followers
// use it.
func (e *Engine) Commits(ctx context.Context, shard int, after uint64) ([]journal.Commit, error) {
	v, err := e.enter(ctx, shard)
	if err != nil {
		return nil, err
	}
	defer v.leave()
	var commits []journal.Commit
	size := 0
	err = v.eachEntry(after+1, func(offset uint64, en entry) (bool, error) {
		c, err := v.commit(offset, en, &size)
		if err != nil {
			return false, err
		}
		commits = append(commits, c)
		return len(commits) < journal.DefaultPageEntries && size < journal.DefaultPageBytes, nil
	})
	return commits, err
}

// eachEntry goes through the entries of commits from an offset on, and expects
// every one.
func (v *view) eachEntry(from uint64, each func(offset uint64, en entry) (bool, error)) error {
	it, err := v.iter(commitKey(nil, from), []byte{kindCommit + 1})
	if err != nil {
		return err
	}
	defer it.Close() //nolint:errcheck // read errors are looked at below
	want := from
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return storeError(err)
		}
		for offset, decode := range decodeEntries(it.Key(), value) {
			if offset != 0 && offset < want {
				continue
			}
			en, err := decode()
			if err != nil {
				return damaged(err, "the entry of commit %d", want)
			}
			if offset != want {
				return damaged(nil, "the entry of commit %d is missing; it", want)
			}
			if more, err := each(offset, en); err != nil || !more {
				return err
			}
			want++
		}
	}
	return storeError(it.Error())
}

func (v *view) commit(offset uint64, en entry, size *int) (journal.Commit, error) {
	c := journal.Commit{Position: journal.ShardPosition{Epoch: v.engine.epoch, Offset: offset}}
	switch en.kind {
	case entryDropLog:
		c.DroppedLog = &en.log
	case entryDropPartition:
		c.DroppedPartition = &en.partition
	}
	for _, name := range en.values {
		c.Values = append(c.Values, journal.ValueKey{Partition: en.partition, Name: name})
	}
	for _, w := range en.writes {
		out := journal.Write{Incarnation: w.id.Incarnation(), First: w.first, Last: w.last()}
		log, found, err := v.name(w.id)
		if err != nil {
			return c, err
		}
		out.Log = log
		if _, gone := v.hidden[w.id]; gone || !found {
			out.Dropped = true
			c.Writes = append(c.Writes, out)
			continue
		}
		all := journal.Limits{Entries: journal.MaxBatchRecords, Bytes: journal.MaxBatchBytes}
		out.Entries, _, err = v.records(log, w.id, w.first, w.last(), false, all)
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

func offsetOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[1:]) }

func seqOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[9:]) }
