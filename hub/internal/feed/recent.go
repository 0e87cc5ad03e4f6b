package feed

import (
	"context"
	"sync"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub/internal/ledger"
	"github.com/parley-hub/parley/journal"
)

// Recent holds the newest commits of every shard, decoded once for all followers of
// all channels. It exists only while there are such followers. A follower that is
// further behind reads the journal.
type Recent struct {
	source  *Source
	cancel  context.CancelFunc
	pumps   sync.WaitGroup
	readers int // guarded by the source

	mu     sync.Mutex
	shards []recentShard
	err    error         // why it ended
	moved  chan struct{} // closed when a commit was added, or the feed ended
	waited bool          // a follower waits for moved
}

// recentShard holds consecutive commits of one shard, oldest first.
type recentShard struct {
	commits []*Commit
	next    uint64 // the offset after the last commit
	bytes   int
}

// pump adds durable commits of a shard after their delivery, so that readers need
// not wait for the delivery.
func (f *Recent) pump(ctx context.Context, shard int, follower journal.ShardFollower) error {
	for {
		commits, err := follower.Next(ctx)
		if err != nil {
			return err
		}
		list := make([]*Commit, len(commits))
		for i := range commits {
			list[i] = NewCommit(&commits[i])
		}
		for _, c := range list {
			for _, entry := range c.History.List {
				if err := f.source.Delivered(ctx, entry.Envelope); err != nil {
					return err
				}
			}
		}
		f.add(shard, list)
	}
}

func (f *Recent) add(shard int, commits []*Commit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.shards[shard]
	for _, c := range commits {
		s.commits = append(s.commits, c)
		s.bytes += c.bytes
		s.next = c.Position.Offset + 1
	}
	oldest, most := 0, f.source.Bytes/len(f.shards)
	for s.bytes > most {
		s.bytes -= s.commits[oldest].bytes
		oldest++
	}
	clear(s.commits[:oldest])
	s.commits = s.commits[oldest:]
	f.signal()
}

func (f *Recent) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
	f.signal()
}

func (f *Recent) signal() {
	if f.waited {
		close(f.moved)
		f.moved, f.waited = make(chan struct{}), false
	}
}

func (f *Recent) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// recentPage is how many commits a follower receives at once.
const recentPage = 256

// After appends the commits of a shard after an offset. Reaches is false if the
// offset is older than the feed's oldest commit.
func (f *Recent) After(shard int, offset uint64, list []*Commit) (_ []*Commit, reaches bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.shards[shard]
	first := s.next - uint64(len(s.commits))
	switch {
	case offset+1 < first:
		return list, false
	case offset+1 >= s.next:
		return list, true
	}
	rest := s.commits[offset+1-first:]
	return append(list, rest[:min(len(rest), recentPage)]...), true
}

// Wait returns a channel that is closed when there is a commit after the positions.
func (f *Recent) Wait(at []journal.ShardPosition) (<-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range at {
		if at[i].Offset+1 < f.shards[i].next {
			return closed, nil
		}
	}
	f.waited = true
	return f.moved, f.err
}

// Source is the one feed that all followers of all channels share.
type Source struct {
	Journal    journal.Engine
	Background context.Context // for the goroutines that read the shards
	Bytes      int             // the maximum to hold
	// Delivered waits until a durable envelope is part of its channel's newest
	// snapshot.
	Delivered func(ctx context.Context, e *envelope.Envelope) error

	mu   sync.Mutex
	feed *Recent // nil: nobody follows
}

// Join returns the shared feed. The caller must call Leave.
func (s *Source) Join(ctx context.Context) (*Recent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.feed; f != nil && f.failure() == nil {
		f.readers++
		return f, nil
	}
	f, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	f.readers = 1
	s.feed = f
	return f, nil
}

// Leave ends one use of the feed; the last one ends the feed.
func (f *Recent) Leave() {
	s := f.source
	s.mu.Lock()
	f.readers--
	last := f.readers == 0
	if last && s.feed == f {
		s.feed = nil
	}
	s.mu.Unlock()
	if last {
		f.cancel()
		f.pumps.Wait()
	}
}

// start starts to read every shard from its current end.
func (s *Source) start(ctx context.Context) (*Recent, error) {
	at, err := End(ctx, s.Journal)
	if err != nil {
		return nil, err
	}
	f := &Recent{source: s, shards: make([]recentShard, len(at)), moved: make(chan struct{})}
	followers := make([]journal.ShardFollower, len(at))
	for shard, from := range at {
		f.shards[shard].next = from.Offset + 1
		if followers[shard], err = s.Journal.FollowShard(ctx, shard, from); err != nil {
			for _, started := range followers[:shard] {
				started.Close()
			}
			return nil, ledger.Unavailable(err)
		}
	}
	ctx, f.cancel = context.WithCancel(s.Background)
	for shard, follower := range followers {
		f.pumps.Go(func() {
			defer follower.Close()
			f.end(f.pump(ctx, shard, follower))
		})
	}
	return f, nil
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
