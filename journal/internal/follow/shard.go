package follow

import (
	"context"
	"sync"

	"github.com/parley-hub/parley/journal"
)

// Shard returns a follower of a shard.
func Shard(src Source, bell *Bell, shard int, after journal.ShardPosition) journal.ShardFollower {
	return &shardFollower{src: src, bell: bell, shard: shard, at: after, closed: make(chan struct{})}
}

type shardFollower struct {
	src   Source
	bell  *Bell
	shard int

	mu  sync.Mutex // of at
	at  journal.ShardPosition
	err error // final

	closeOnce sync.Once
	closed    chan struct{}
}

func (f *shardFollower) Position() journal.ShardPosition {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

func (f *shardFollower) Close() { f.closeOnce.Do(func() { close(f.closed) }) }

func (f *shardFollower) Next(ctx context.Context) ([]journal.Commit, error) {
	if f.err != nil {
		return nil, f.err
	}
	for {
		select {
		case <-f.closed:
			return nil, journal.ErrClosed
		default:
		}
		// The watch begins before the read, so that no commit is missed between them.
		rung, end := f.bell.watchShard()
		commits, err := f.read(ctx)
		if err == nil && len(commits) == 0 {
			err = f.bell.Err()
		}
		if err != nil || len(commits) > 0 {
			end()
			if err != nil && ctx.Err() == nil {
				f.err = err
			}
			return commits, err
		}
		err = await(ctx, rung, f.closed)
		end()
		if err != nil {
			return nil, err
		}
	}
}

func (f *shardFollower) read(ctx context.Context) ([]journal.Commit, error) {
	place, err := f.src.Place(ctx, f.shard)
	if err != nil {
		return nil, err
	}
	at := f.Position()
	if gap := f.gap(at, place); gap != nil {
		return nil, gap
	}
	if place.Durable <= at.Offset {
		return nil, nil
	}
	commits, err := f.src.Commits(ctx, f.shard, at.Offset)
	if err != nil || len(commits) == 0 {
		return nil, err
	}
	f.mu.Lock()
	f.at = commits[len(commits)-1].Position
	f.mu.Unlock()
	return commits, nil
}

func (f *shardFollower) gap(at journal.ShardPosition, place journal.Place) error {
	if at.IsZero() {
		return nil
	}
	gap := &journal.GapError{
		Shard: f.shard, WantShard: at,
		HeadShard: journal.ShardPosition{Epoch: place.Epoch, Offset: place.Durable},
	}
	switch {
	case at.Epoch != place.Epoch:
		gap.Reason = journal.EpochChanged
	case at.Offset > place.Durable:
		gap.Reason = journal.NeverWritten
	default:
		return nil
	}
	return gap
}
