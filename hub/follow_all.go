package hub

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// WidePosition is a place among all events of the hub: after the first Skip
// events of the batch that follows the shard's position.
type WidePosition struct {
	journal.ShardPosition
	Skip int
}

// String is the text form, for example "1.42.0".
func (p WidePosition) String() string {
	return fmt.Sprintf("%s.%d", p.ShardPosition, p.Skip)
}

// ParseWidePosition reads the text form.
func ParseWidePosition(s string) (WidePosition, error) {
	var p WidePosition
	cut := strings.LastIndexByte(s, '.')
	if cut < 0 {
		return p, fault.New(fault.Invalid, "position %q is not of the form epoch.offset.n", s)
	}
	var err error
	if p.ShardPosition, err = journal.ParseShardPosition(s[:cut]); err == nil {
		_, err = fmt.Sscanf(s[cut+1:], "%d", &p.Skip)
	}
	if err != nil || p.String() != s {
		return WidePosition{}, fault.New(fault.Invalid, "position %q is not of the form epoch.offset.n", s)
	}
	return p, nil
}

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
	Match func(*channel.Metadata) bool // nil: every channel

	requests bool // the envelopes of the side logs that tell of requests, instead of the histories
}

// WideFollower follows many channels in the order their events became durable.
type WideFollower struct {
	hub     *Hub
	opts    WideOptions
	journal journal.ShardFollower
	commits []journal.Commit
	events  []WideEvent
	at      WidePosition // before the first commit not yet unpacked
}

// FollowAll follows every channel that an identity may see.
func (h *Hub) FollowAll(ctx context.Context, o WideOptions) (*WideFollower, error) {
	jf, err := h.journal.FollowShard(ctx, h.shard(), o.After.ShardPosition)
	if err != nil {
		return nil, unavailable(err)
	}
	return &WideFollower{hub: h, opts: o, journal: jf, at: o.After}, nil
}

// Now is the position after everything that is durable.
func (h *Hub) Now(ctx context.Context) (WidePosition, error) {
	place, err := h.journal.Place(ctx, h.shard())
	if err != nil {
		return WidePosition{}, unavailable(err)
	}
	return WidePosition{ShardPosition: journal.ShardPosition{Epoch: place.Epoch, Offset: place.Durable}}, nil
}

// Close ends the follower.
func (f *WideFollower) Close() { f.journal.Close() }

// Next waits for the next event. A position that does not exist is answered
// with a *WideGap.
func (f *WideFollower) Next(ctx context.Context) (WideEvent, error) {
	for len(f.events) == 0 {
		if len(f.commits) == 0 {
			commits, err := f.journal.Next(ctx)
			if err != nil {
				return WideEvent{}, wideError(err)
			}
			f.commits = commits
		}
		commit := f.commits[0]
		f.commits = f.commits[1:]
		if err := f.unpack(ctx, commit); err != nil {
			return WideEvent{}, err
		}
	}
	ev := f.events[0]
	f.events = f.events[1:]
	return ev, nil
}

// NextUntil is Next for what was durable at a position that Now returned: it
// answers false, without waiting, when there is nothing more up to there.
func (f *WideFollower) NextUntil(ctx context.Context, now WidePosition) (ev WideEvent, ok bool, err error) {
	if gap := f.gapAt(now); gap != nil {
		return WideEvent{}, false, gap
	}
	for len(f.events) == 0 {
		if f.at.Offset >= now.Offset {
			return WideEvent{}, false, nil
		}
		if len(f.commits) == 0 {
			if f.commits, err = f.journal.Next(ctx); err != nil {
				return WideEvent{}, false, wideError(err)
			}
		}
		commit := f.commits[0]
		f.commits = f.commits[1:]
		if err := f.unpack(ctx, commit); err != nil {
			return WideEvent{}, false, err
		}
	}
	ev, f.events = f.events[0], f.events[1:]
	return ev, true, nil
}

// gapAt refuses a position beyond the one that Now returned. Without it, a reader
// that does not wait would be told that nothing happened.
func (f *WideFollower) gapAt(now WidePosition) error {
	switch {
	case f.at.IsZero():
		return nil
	case f.at.Epoch != now.Epoch:
		return &WideGap{Head: now, Reason: journal.EpochChanged.String()}
	case f.at.Offset > now.Offset:
		return &WideGap{Head: now, Reason: journal.NeverWritten.String()}
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

func wideError(err error) error {
	var gap *journal.GapError
	if errors.As(err, &gap) {
		return &WideGap{Head: WidePosition{ShardPosition: gap.HeadShard}, Reason: gap.Reason.String()}
	}
	return unavailable(err)
}

// unpack turns a commit into the events that the follower may see. Each event
// resumes within the commit, but the last, which resumes after it.
func (f *WideFollower) unpack(ctx context.Context, commit journal.Commit) error {
	before, skip := f.at.ShardPosition, f.at.Skip
	f.at = WidePosition{ShardPosition: commit.Position}
	n := 0
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
			f.events = append(f.events, WideEvent{
				Envelope: e, Channel: m, Position: WidePosition{ShardPosition: before, Skip: n},
			})
		}
	}
	if last := len(f.events) - 1; last >= 0 && f.events[last].Position.Skip == n {
		f.events[last].Position = f.at
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
		return m, err == nil && (f.opts.Match == nil || f.opts.Match(m)), err
	}
	s, err := f.hub.snapshot(ctx, e.Channel, e.Seq)
	if Deleted(err) {
		return nil, false, nil
	}
	if err != nil || f.opts.Match != nil && !f.opts.Match(s.meta) {
		return nil, false, err
	}
	sees, err := f.hub.sees(ctx, s, e, f.opts.As)
	return s.meta, sees, err
}
