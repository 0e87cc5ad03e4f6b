package hub

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/feed"
	"github.com/parley-hub/parley/journal"
)

// WideEvent is an event of any channel.
type WideEvent struct {
	Envelope *envelope.Envelope
	Channel  *channel.Metadata
	Position WidePosition // where to resume after this event
	// Shared is common to all who follow all channels; nil if the position of an
	// event depends on the follower, as it does with several shards.
	Shared *Shared
}

// WidePosition is a place among all events of the hub.
type WidePosition = feed.Position

// ParseWidePosition reads the text form of a position.
func ParseWidePosition(s string) (WidePosition, error) { return feed.ParsePosition(s) }

// WideOptions says what to follow.
type WideOptions struct {
	As    string // only the channels it takes part in, and what it may see there; empty: everything
	After WidePosition
	Type  string  // only channels of this type
	Label []Label // only channels that carry all of these
	// NoPrivate leaves out private channels, including those of the agent that As
	// names. It is for a caller that is neither a member nor an operator.
	NoPrivate bool

	requests bool // the envelopes of the side logs that tell of requests, instead of the histories
}

// WideFollower follows many channels in the order their events became durable,
// those of each shard for itself. It is used by one goroutine, apart from Close.
type WideFollower struct {
	hub     *Hub
	opts    WideOptions
	recent  *feed.Recent
	fetched []journal.ShardPosition // by shard, what commits end with
	commits []shardCommit
	events  []WideEvent
	shown   int            // how many of events were handed out
	page    []*feed.Commit // room for a page of commits
	at      []feed.Place   // in each shard, before the first commit not yet unpacked
	gap     error          // why the position to begin at does not exist
	closed  chan struct{}
	once    sync.Once
}

type shardCommit struct {
	shard  int
	commit *feed.Commit
}

// FollowAll follows every channel that an identity may see.
func (h *Hub) FollowAll(ctx context.Context, o WideOptions) (*WideFollower, error) {
	at, err := o.After.Places(h.journal.Shards())
	if err != nil {
		return nil, err
	}
	f := &WideFollower{
		hub: h, opts: o, at: at, fetched: make([]journal.ShardPosition, len(at)), closed: make(chan struct{}),
	}
	for i := range at {
		f.fetched[i] = at[i].ShardPosition
	}
	now, err := feed.End(ctx, h.journal)
	if err != nil {
		return nil, err
	}
	f.gap = f.gapAt(feed.PlacesOf(now))
	if f.recent, err = h.recent.Join(ctx); err != nil {
		return nil, err
	}
	return f, nil
}

// Now is the position after everything that is durable.
func (h *Hub) Now(ctx context.Context) (WidePosition, error) {
	at, err := feed.End(ctx, h.journal)
	if err != nil {
		return WidePosition{}, err
	}
	return feed.PositionOf(feed.PlacesOf(at)), nil
}

// Close ends the follower; Next then returns an error.
func (f *WideFollower) Close() {
	f.once.Do(func() {
		close(f.closed)
		f.recent.Leave()
	})
}

// Next waits for the next event. A position that does not exist is answered
// with a *WideGap.
func (f *WideFollower) Next(ctx context.Context) (WideEvent, error) {
	for {
		ev, wake, err := f.TryNext(ctx)
		if err != nil || wake == nil {
			return ev, err
		}
		if err := f.wait(ctx, wake); err != nil {
			return WideEvent{}, err
		}
	}
}

func (f *WideFollower) wait(ctx context.Context, wake <-chan struct{}) error {
	select {
	case <-wake:
		return nil
	case <-f.closed:
		return errFollowerClosed
	case <-ctx.Done():
		return unavailable(ctx.Err())
	}
}

// TryNext returns the next event if there is one, and otherwise a channel that is closed
// when there may be one.
func (f *WideFollower) TryNext(ctx context.Context) (WideEvent, <-chan struct{}, error) {
	for len(f.events) == 0 {
		if len(f.commits) == 0 {
			if wake, err := f.fetch(ctx); err != nil || wake != nil {
				return WideEvent{}, wake, err
			}
		}
		if err := f.unpack(ctx, 0); err != nil {
			return WideEvent{}, nil, err
		}
	}
	return f.shift(), nil, nil
}

func (f *WideFollower) shift() WideEvent {
	ev := f.events[f.shown]
	if f.shown++; f.shown == len(f.events) {
		clear(f.events)
		f.events, f.shown = f.events[:0], 0
	}
	return ev
}

// fetch takes the next commits of every shard. If there are none, it returns a channel
// that is closed when there may be some.
func (f *WideFollower) fetch(ctx context.Context) (wake <-chan struct{}, err error) {
	select {
	case <-f.closed:
		return nil, errFollowerClosed
	default:
	}
	if f.gap != nil {
		return nil, f.gap
	}
	before := len(f.commits)
	for shard := range f.fetched {
		list, reaches := f.recent.After(shard, f.fetched[shard].Offset, f.page[:0])
		if f.page = list; !reaches {
			if list, err = f.read(ctx, shard); err != nil {
				return nil, f.hub.wideError(ctx, err)
			}
		}
		for _, commit := range list {
			f.commits = append(f.commits, shardCommit{shard, commit})
			f.fetched[shard] = commit.Position
		}
	}
	if len(f.commits) > before {
		return nil, nil
	}
	if wake, err = f.recent.Wait(f.fetched); err != nil {
		return nil, f.hub.wideError(ctx, err)
	}
	return wake, nil
}

// read reads commits of a shard from the journal, which has more.
func (f *WideFollower) read(ctx context.Context, shard int) ([]*feed.Commit, error) {
	follower, err := f.hub.journal.FollowShard(ctx, shard, f.fetched[shard])
	if err != nil {
		return nil, err
	}
	defer follower.Close()
	commits, err := follower.Next(ctx)
	list := make([]*feed.Commit, len(commits))
	for i := range commits {
		list[i] = feed.NewCommit(&commits[i])
	}
	return list, err
}

// NextUntil is Next for what was durable at a position that Now returned: it
// answers false, without waiting, when there is nothing more up to there.
func (f *WideFollower) NextUntil(ctx context.Context, now WidePosition) (ev WideEvent, ok bool, err error) {
	until, err := now.Places(len(f.at))
	if err != nil {
		return WideEvent{}, false, err
	}
	if gap := f.gapAt(until); gap != nil {
		return WideEvent{}, false, gap
	}
	for len(f.events) == 0 {
		i := slices.IndexFunc(f.commits, func(c shardCommit) bool { return c.commit.Position.Offset <= until[c.shard].Offset })
		if i < 0 {
			if f.reached(until) {
				return WideEvent{}, false, nil
			}
			wake, err := f.fetch(ctx)
			if err == nil && wake != nil {
				err = f.wait(ctx, wake)
			}
			if err != nil {
				return WideEvent{}, false, err
			}
			continue
		}
		if err := f.unpack(ctx, i); err != nil {
			return WideEvent{}, false, err
		}
	}
	return f.shift(), true, nil
}

func (f *WideFollower) reached(until []feed.Place) bool {
	for i := range until {
		if f.at[i].Offset < until[i].Offset {
			return false
		}
	}
	return true
}

// gapAt refuses a position that did not exist when Now returned: a reader that does not
// wait would otherwise see no events and no error.
func (f *WideFollower) gapAt(until []feed.Place) error {
	for i := range until {
		switch {
		case f.at[i].IsZero():
		case f.at[i].Epoch != until[i].Epoch:
			return &WideGap{Head: feed.PositionOf(until), Reason: journal.EpochChanged.String()}
		case f.at[i].Offset > until[i].Offset:
			return &WideGap{Head: feed.PositionOf(until), Reason: journal.NeverWritten.String()}
		}
	}
	return nil
}

// WideGap is the refusal of a position that no longer exists.
type WideGap struct {
	Head   WidePosition // where everything ends now
	Reason string
}

func (g *WideGap) Error() string {
	return "position does not exist: " + g.Reason + "; everything ends at " + g.Head.String()
}

// Unwrap gives the gap its code.
func (g *WideGap) Unwrap() error { return fault.New(fault.Gap, "%s", g.Error()) }

func (h *Hub) wideError(ctx context.Context, err error) error {
	var gap *journal.GapError
	if !errors.As(err, &gap) {
		return unavailable(err)
	}
	if h.journal.Shards() == 1 {
		return &WideGap{Head: WidePosition{ShardPosition: gap.HeadShard}, Reason: gap.Reason.String()}
	}
	head, err := h.Now(ctx)
	if err != nil {
		return err
	}
	return &WideGap{Head: head, Reason: gap.Reason.String()}
}

// unpack turns the i-th commit into the events that the follower may see. Each event but
// the last resumes within the commit; the last resumes after it.
func (f *WideFollower) unpack(ctx context.Context, i int) error {
	shard, commit := f.commits[i].shard, f.commits[i].commit
	if commit.Err != nil {
		return commit.Err
	}
	entries, skip := &commit.History, f.at[shard].Skip
	if f.opts.requests {
		entries = &commit.Side
	}
	before := commit.Position
	before.Offset--
	for i := range entries.List {
		entry := &entries.List[i]
		if entry.N <= skip {
			continue
		}
		m, shown, err := f.shows(ctx, entry.Envelope)
		if err != nil {
			return err
		}
		if !shown {
			continue
		}
		f.at[shard] = feed.Place{ShardPosition: before, Skip: entry.N}
		if entry.N == entries.Count {
			f.at[shard] = feed.Place{ShardPosition: commit.Position}
		}
		ev := WideEvent{Envelope: entry.Envelope, Channel: m, Position: feed.PositionOf(f.at)}
		if len(f.at) == 1 {
			ev.Shared = entry.Shared
		}
		f.events = append(f.events, ev)
	}
	f.at[shard] = feed.Place{ShardPosition: commit.Position}
	if i == 0 {
		f.commits = f.commits[1:]
	} else {
		f.commits = slices.Delete(f.commits, i, i+1)
	}
	return nil
}

// shows decides whether an event is the follower's, from the newest durable
// snapshot of its channel.
func (f *WideFollower) shows(ctx context.Context, e *envelope.Envelope) (*channel.Metadata, bool, error) {
	if f.opts.As == "" {
		m, err := f.hub.durableMeta(ctx, e.Channel)
		if Deleted(err) {
			return nil, false, nil
		}
		return m, err == nil && f.ofGroup(m), err
	}
	s, err := f.hub.snapshot(ctx, e.Channel, e.Seq)
	if Deleted(err) {
		return nil, false, nil
	}
	if err != nil || !f.ofGroup(s.meta) {
		return nil, false, err
	}
	sees, err := f.hub.sees(ctx, s, e, f.opts.As)
	return s.meta, sees, err
}

// ofGroup reports whether a channel is one of those that are followed.
func (f *WideFollower) ofGroup(m *channel.Metadata) bool {
	return ofGroup(m, f.opts.Type, f.opts.Label) && !(f.opts.NoPrivate && f.hub.private(m))
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
