package feed

import (
	"context"
	"sync"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/ledger"
	"github.com/parley-hub/parley/journal"
)

// Shards follows all shards at once. With one shard, Next calls its follower
// directly; with several, one goroutine for each follower sends its commits to
// Next. Only Close may be called from another goroutine.
type Shards struct {
	followers []journal.ShardFollower
	fed       chan fedCommits
	closed    chan struct{}
	once      sync.Once
	done      sync.WaitGroup
	err       error
}

type fedCommits struct {
	shard   int
	commits []journal.Commit
	err     error
}

// Follow follows every shard after its position; with none, from the beginning.
func Follow(ctx context.Context, j journal.Engine, after []journal.ShardPosition) (*Shards, error) {
	n := j.Shards()
	if len(after) != 0 && len(after) != n {
		return nil, fault.New(fault.Invalid, "the position names %d shards, and there are %d", len(after), n)
	}
	f := &Shards{fed: make(chan fedCommits), closed: make(chan struct{})}
	for shard := range n {
		var from journal.ShardPosition
		if len(after) > 0 {
			from = after[shard]
		}
		follower, err := j.FollowShard(ctx, shard, from)
		if err != nil {
			f.Close()
			return nil, err
		}
		f.followers = append(f.followers, follower)
	}
	if n > 1 {
		for shard, follower := range f.followers {
			f.done.Go(func() { f.run(shard, follower) })
		}
	}
	return f, nil
}

func (f *Shards) run(shard int, follower journal.ShardFollower) {
	for {
		commits, err := follower.Next(context.Background()) // Close ends it
		select {
		case f.fed <- fedCommits{shard, commits, err}:
		case <-f.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

// Next waits for the next commits of any shard.
func (f *Shards) Next(ctx context.Context) (shard int, commits []journal.Commit, err error) {
	if len(f.followers) == 1 {
		commits, err = f.followers[0].Next(ctx)
		return 0, commits, err
	}
	if f.err != nil {
		return 0, nil, f.err
	}
	select {
	case got := <-f.fed:
		f.err = got.err
		return got.shard, got.commits, got.err
	case <-f.closed:
		return 0, nil, journal.ErrClosed
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
}

// Close ends the feed and waits for its goroutines.
func (f *Shards) Close() {
	f.once.Do(func() { close(f.closed) })
	for _, follower := range f.followers {
		follower.Close()
	}
	f.done.Wait()
}

// End returns the position after everything that is durable.
func End(ctx context.Context, j journal.Engine) (journal.StorePosition, error) {
	at := make(journal.StorePosition, j.Shards())
	for shard := range at {
		place, err := j.Place(ctx, shard)
		if err != nil {
			return nil, ledger.Unavailable(err)
		}
		at[shard] = journal.ShardPosition{Epoch: place.Epoch, Offset: place.Durable}
	}
	return at, nil
}
