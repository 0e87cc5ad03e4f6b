package hub

import (
	"context"
	"sync"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// recentFeed holds the newest commits of every shard, decoded once for all who
// follow all channels. It exists while somebody does. Who is further behind than it
// reaches reads the journal.
type recentFeed struct {
	hub     *Hub
	cancel  context.CancelFunc
	pumps   sync.WaitGroup
	readers int // guarded by recentFeeds

	mu     sync.Mutex
	shards []recentShard
	err    error         // why it ended
	moved  chan struct{} // closed when a commit was added, or it ended
	waited bool          // somebody waits for moved
}

// recentShard holds consecutive commits of one shard, oldest first.
type recentShard struct {
	commits []*wideCommit
	next    uint64 // the offset after the last commit
	bytes   int
}

// wideCommit is a commit as followers of all channels see it. It is immutable.
type wideCommit struct {
	position journal.ShardPosition
	history  wideEntries
	side     wideEntries // requests only
	bytes    int
	err      error // why it cannot be read
}

// wideEntries are records of one commit and one family of logs.
type wideEntries struct {
	count int // also of those that are not listed
	list  []wideEntry
}

// wideEntry is the n-th record, counted from 1.
type wideEntry struct {
	n        int
	envelope *envelope.Envelope
	shared   *Shared
}

// recentFeeds is the one feed that those share who follow all channels.
type recentFeeds struct {
	mu   sync.Mutex
	feed *recentFeed // nil: nobody follows
}

// joinRecent returns the shared feed. The caller leaves it.
func (h *Hub) joinRecent(ctx context.Context) (*recentFeed, error) {
	h.recent.mu.Lock()
	defer h.recent.mu.Unlock()
	if f := h.recent.feed; f != nil && f.failure() == nil {
		f.readers++
		return f, nil
	}
	f, err := h.startRecent(ctx)
	if err != nil {
		return nil, err
	}
	f.readers = 1
	h.recent.feed = f
	return f, nil
}

func (f *recentFeed) leave() {
	h := f.hub
	h.recent.mu.Lock()
	f.readers--
	last := f.readers == 0
	if last && h.recent.feed == f {
		h.recent.feed = nil
	}
	h.recent.mu.Unlock()
	if last {
		f.cancel()
		f.pumps.Wait()
	}
}

// startRecent begins to read every shard where it ends now.
func (h *Hub) startRecent(ctx context.Context) (*recentFeed, error) {
	at, err := h.storePosition(ctx)
	if err != nil {
		return nil, err
	}
	f := &recentFeed{hub: h, shards: make([]recentShard, len(at)), moved: make(chan struct{})}
	followers := make([]journal.ShardFollower, len(at))
	for shard, from := range at {
		f.shards[shard].next = from.Offset + 1
		if followers[shard], err = h.journal.FollowShard(ctx, shard, from); err != nil {
			for _, started := range followers[:shard] {
				started.Close()
			}
			return nil, unavailable(err)
		}
	}
	ctx, f.cancel = context.WithCancel(h.background)
	for shard, follower := range followers {
		f.pumps.Go(func() {
			defer follower.Close()
			f.end(f.pump(ctx, shard, follower))
		})
	}
	return f, nil
}

// pump adds what becomes durable in a shard once it was delivered, so that nobody
// who reads it waits for that.
func (f *recentFeed) pump(ctx context.Context, shard int, follower journal.ShardFollower) error {
	for {
		commits, err := follower.Next(ctx)
		if err != nil {
			return err
		}
		list := make([]*wideCommit, len(commits))
		for i := range commits {
			list[i] = newWideCommit(&commits[i])
		}
		for _, c := range list {
			for _, entry := range c.history.list {
				if err := f.hub.awaitDelivery(ctx, entry.envelope); err != nil {
					return err
				}
			}
		}
		f.add(shard, list)
	}
}

// awaitDelivery waits until a durable envelope is part of its channel's newest
// snapshot, if the channel is loaded.
func (h *Hub) awaitDelivery(ctx context.Context, e *envelope.Envelope) error {
	ch := h.channels.get(e.Channel)
	for ch != nil && !ch.delivered(e.Seq) {
		moved := h.snapshots.next(e.Channel)
		if ch.delivered(e.Seq) || h.channels.get(e.Channel) != ch {
			break
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (ch *loadedChannel) delivered(seq uint64) bool {
	s := ch.durable.Load()
	return s != nil && s.history >= seq
}

func (f *recentFeed) add(shard int, commits []*wideCommit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.shards[shard]
	for _, c := range commits {
		s.commits = append(s.commits, c)
		s.bytes += c.bytes
		s.next = c.position.Offset + 1
	}
	oldest, most := 0, f.hub.opts.Limits.RecentEvents/len(f.shards)
	for s.bytes > most {
		s.bytes -= s.commits[oldest].bytes
		oldest++
	}
	clear(s.commits[:oldest])
	s.commits = s.commits[oldest:]
	f.signal()
}

func (f *recentFeed) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
	f.signal()
}

func (f *recentFeed) signal() {
	if f.waited {
		close(f.moved)
		f.moved, f.waited = make(chan struct{}), false
	}
}

func (f *recentFeed) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// recentPage is how many commits a follower takes at once.
const recentPage = 256

// after appends the commits of a shard after an offset. Held is false if the feed
// does not reach back so far.
func (f *recentFeed) after(shard int, offset uint64, list []*wideCommit) (_ []*wideCommit, held bool) {
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

// wait returns what is closed when there is more after the positions.
func (f *recentFeed) wait(at []journal.ShardPosition) (<-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range at {
		if at[i].Offset+1 < f.shards[i].next {
			return closedChan, nil
		}
	}
	f.waited = true
	return f.moved, f.err
}

// recordOverhead is what an entry takes besides its data, which is counted twice:
// with the frame that is made of it.
const recordOverhead = 1024

// newWideCommit decodes a commit.
func newWideCommit(commit *journal.Commit) *wideCommit {
	c := &wideCommit{position: commit.Position, bytes: 128}
	if isSeed(commit) { // nobody posted it, and its channel does not exist yet
		return c
	}
	for i := range commit.Writes {
		write := &commit.Writes[i]
		switch write.Log.Family {
		case schema.FamilyHistory:
			c.add(&c.history, write.Entries, decodeEntry)
		case schema.FamilySide:
			c.add(&c.side, write.Entries, requestEnvelope)
		}
	}
	return c
}

func (c *wideCommit) add(to *wideEntries, entries []journal.Entry, decode func(journal.Entry) (*envelope.Envelope, error)) {
	for _, entry := range entries {
		to.count++
		e, err := decode(entry)
		if err != nil {
			c.err = err
			return
		}
		if e != nil {
			to.list = append(to.list, wideEntry{n: to.count, envelope: e, shared: &Shared{}})
			c.bytes += 2*len(entry.Data) + recordOverhead
		}
	}
}

// isSeed reports whether a commit is part of a seed, and not of its end.
func isSeed(commit *journal.Commit) bool {
	for i := range commit.Writes {
		if write := &commit.Writes[i]; write.Log.Family == schema.FamilySide {
			return len(write.Entries) == 1 && schema.IsSeed(write.Entries[0].Data)
		}
	}
	return false
}
