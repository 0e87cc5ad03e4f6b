package hub

import (
	"context"
	"errors"
	"slices"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// WideEvent is an event of any channel.
type WideEvent struct {
	Envelope *envelope.Envelope
	Channel  *channel.Metadata
	Position WidePosition // where to resume after this event
}

// WideOptions says what to follow.
type WideOptions struct {
	As    string // only the channels it takes part in, and what it may see there; empty: everything
	After WidePosition
	Type  string  // only channels of this type
	Label []Label // only channels that carry all of these
	// NoPrivate leaves private channels out, also of whom As names: for a caller
	// who is neither a member nor an operator.
	NoPrivate bool

	requests bool // the envelopes of the side logs that tell of requests, instead of the histories
}

// WideFollower follows many channels in the order their events became durable,
// those of each shard for itself.
type WideFollower struct {
	hub     *Hub
	opts    WideOptions
	feed    *shardFeed
	commits []shardCommit
	events  []WideEvent
	at      []shardPlace // in each shard, before the first commit not yet unpacked
}

type shardCommit struct {
	shard  int
	commit journal.Commit
}

// FollowAll follows every channel that an identity may see.
func (h *Hub) FollowAll(ctx context.Context, o WideOptions) (*WideFollower, error) {
	at, err := o.After.places(h.journal.Shards())
	if err != nil {
		return nil, err
	}
	after := make([]journal.ShardPosition, len(at))
	for i := range at {
		after[i] = at[i].ShardPosition
	}
	feed, err := h.feed(ctx, after)
	if err != nil {
		return nil, unavailable(err)
	}
	return &WideFollower{hub: h, opts: o, feed: feed, at: at}, nil
}

// Now is the position after everything that is durable.
func (h *Hub) Now(ctx context.Context) (WidePosition, error) {
	at, err := h.storePosition(ctx)
	if err != nil {
		return WidePosition{}, err
	}
	places := make([]shardPlace, len(at))
	for i := range at {
		places[i].ShardPosition = at[i]
	}
	return widePosition(places), nil
}

// Close ends the follower.
func (f *WideFollower) Close() { f.feed.Close() }

// Next waits for the next event. A position that does not exist is answered
// with a *WideGap.
func (f *WideFollower) Next(ctx context.Context) (WideEvent, error) {
	for len(f.events) == 0 {
		if len(f.commits) == 0 {
			if err := f.fetch(ctx); err != nil {
				return WideEvent{}, err
			}
		}
		next := f.commits[0]
		f.commits = f.commits[1:]
		if err := f.unpack(ctx, next.shard, next.commit); err != nil {
			return WideEvent{}, err
		}
	}
	ev := f.events[0]
	f.events = f.events[1:]
	return ev, nil
}

// fetch waits for commits of any shard.
func (f *WideFollower) fetch(ctx context.Context) error {
	shard, commits, err := f.feed.next(ctx)
	if err != nil {
		return f.hub.wideError(ctx, err)
	}
	for _, commit := range commits {
		f.commits = append(f.commits, shardCommit{shard, commit})
	}
	return nil
}

// NextUntil is Next for what was durable at a position that Now returned: it
// answers false, without waiting, when there is nothing more up to there.
func (f *WideFollower) NextUntil(ctx context.Context, now WidePosition) (ev WideEvent, ok bool, err error) {
	until, err := now.places(len(f.at))
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
			if err := f.fetch(ctx); err != nil {
				return WideEvent{}, false, err
			}
			continue
		}
		next := f.commits[i]
		f.commits = slices.Delete(f.commits, i, i+1)
		if err := f.unpack(ctx, next.shard, next.commit); err != nil {
			return WideEvent{}, false, err
		}
	}
	ev, f.events = f.events[0], f.events[1:]
	return ev, true, nil
}

func (f *WideFollower) reached(until []shardPlace) bool {
	for i := range until {
		if f.at[i].Offset < until[i].Offset {
			return false
		}
	}
	return true
}

// gapAt refuses a place that was not there at a position that Now returned: a
// reader that does not wait would otherwise be told that nothing happened.
func (f *WideFollower) gapAt(until []shardPlace) error {
	for i := range until {
		switch {
		case f.at[i].IsZero():
		case f.at[i].Epoch != until[i].Epoch:
			return &WideGap{Head: widePosition(until), Reason: journal.EpochChanged.String()}
		case f.at[i].Offset > until[i].Offset:
			return &WideGap{Head: widePosition(until), Reason: journal.NeverWritten.String()}
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

// unpack turns a commit into the events that the follower may see. Each event
// resumes within the commit, but the last, which resumes after it.
func (f *WideFollower) unpack(ctx context.Context, shard int, commit journal.Commit) error {
	before, skip := f.at[shard].ShardPosition, f.at[shard].Skip
	after := shardPlace{ShardPosition: commit.Position}
	if isSeed(commit) { // nobody posted it, and its channel does not exist yet
		f.at[shard] = after
		return nil
	}
	n, last := 0, 0 // how many events there are, and which of them is the last that is shown
	for _, write := range commit.Writes {
		if write.Log.Family != f.family() {
			continue
		}
		for _, entry := range write.Entries {
			n++
			if n <= skip {
				continue
			}
			e, err := f.decode(entry)
			if err != nil {
				return err
			}
			if e == nil {
				continue
			}
			m, shown, err := f.shows(ctx, e)
			if err != nil {
				return err
			}
			if !shown {
				continue
			}
			last = n
			f.at[shard] = shardPlace{before, n}
			f.events = append(f.events, WideEvent{Envelope: e, Channel: m, Position: widePosition(f.at)})
		}
	}
	f.at[shard] = after
	if last > 0 && last == n {
		f.events[len(f.events)-1].Position = widePosition(f.at)
	}
	return nil
}

// family is the logs that the follower reads.
func (f *WideFollower) family() string {
	if f.opts.requests {
		return schema.FamilySide
	}
	return schema.FamilyHistory
}

// decode reads the envelope of a record; nil is one that is not followed.
func (f *WideFollower) decode(entry journal.Entry) (*envelope.Envelope, error) {
	if f.opts.requests {
		return requestEnvelope(entry)
	}
	return decodeEntry(entry)
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

// isSeed reports whether a commit is part of a seed, and not of its end.
func isSeed(commit journal.Commit) bool {
	for _, write := range commit.Writes {
		if write.Log.Family == schema.FamilySide {
			return len(write.Entries) == 1 && schema.IsSeed(write.Entries[0].Data)
		}
	}
	return false
}
