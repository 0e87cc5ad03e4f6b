package agh

import (
	"context"
	"maps"

	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// tally counts the conversations of a channel, and its public messages: those of
// threads without an addressee.
type tally struct {
	conversations map[wire.Surface]int
	all           int // messages, public or not
	openWork      map[wire.Surface]int

	kinds    map[wire.Kind]int
	messages int
	lastAt   int64
	lastID   string
	lastIn   string // its thread
	preview  string // its text
	long     bool   // the text is longer than what is kept here
	speakers map[string]struct{}
}

func newTally() *tally {
	return &tally{
		conversations: map[wire.Surface]int{}, openWork: map[wire.Surface]int{},
		kinds: map[wire.Kind]int{}, speakers: map[string]struct{}{},
	}
}

// countTries bounds how often counting starts again because messages were stored
// meanwhile; after that, the counts may be off by those.
const countTries = 5

// mostSpeakers bounds how many speakers of a channel are counted.
const mostSpeakers = 100_000

// update changes the counts, if they are known.
func (r *netChannel) update(change func(t *tally)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tally != nil {
		change(r.tally)
	}
	r.stored++
}

// forget removes the counts, so that they are computed again.
func (r *netChannel) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally = nil
	r.stored++
}

// add counts one stored message.
func (t *tally) add(e *wire.Envelope, c change) {
	t.all++
	if c.opened {
		t.conversations[e.Surface]++
	}
	t.openWork[e.Surface] += c.openWork()
	if e.Surface != wire.Thread || e.To != "" {
		return
	}
	t.messages++
	t.kinds[e.Kind]++
	if t.messages == 1 || e.TS > t.lastAt || e.TS == t.lastAt && e.ID > t.lastID {
		t.lastAt, t.lastID, t.lastIn = e.TS, clone(e.ID), clone(e.Thread)
		if t.preview, t.long = e.Preview(), false; len(t.preview) > work.MaxText {
			t.preview, t.long = "", true
		}
		t.preview = clone(t.preview)
	}
	if len(t.speakers) < mostSpeakers {
		t.speakers[clone(e.From)] = struct{}{}
	}
}

// snapshot is a copy for use without the channel's lock; it has the number of speakers
// only.
type snapshot struct {
	tally
	participants int
}

func (t *tally) snapshot() snapshot {
	s := snapshot{*t, len(t.speakers)}
	s.conversations, s.openWork, s.kinds, s.speakers = maps.Clone(t.conversations), maps.Clone(t.openWork), maps.Clone(t.kinds), nil
	return s
}

// counts returns the counts of a channel. At first use they are computed from the rows
// of its conversations.
func (r *netChannel) counts(ctx context.Context) (snapshot, error) {
	r.counting.Lock()
	defer r.counting.Unlock()
	for try := 1; ; try++ {
		r.mu.Lock()
		if r.tally != nil {
			s := r.tally.snapshot()
			r.mu.Unlock()
			return s, nil
		}
		before := r.stored
		r.mu.Unlock()
		t, err := r.readTally(ctx)
		if err != nil {
			return snapshot{}, err
		}
		r.mu.Lock()
		if r.stored == before || try == countTries { // no message was stored while the rows were read
			r.tally = t
		}
		r.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return snapshot{}, fault.Wrap(fault.Unavailable, err, "gave up counting the messages of %q: %v", r.channel, err)
		}
	}
}

// readTally adds up the rows of a channel's conversations.
func (r *netChannel) readTally(ctx context.Context) (*tally, error) {
	t := newTally()
	for _, surface := range []wire.Surface{wire.Thread, wire.Direct} {
		q := hub.EntryQuery{Type: kindOf(surface), Prefix: work.ActivityPrefix(r.channel), Limit: 500}
		err := r.space.entries(ctx, q, func(e hub.Entry) (bool, error) {
			row, err := work.ParseRow(e.Key, e.Value)
			if err != nil {
				return false, fault.Wrap(fault.Internal, err, "%v", err)
			}
			t.addRow(surface, &row)
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	prefix := work.SpeakerPrefix(r.channel)
	err := r.space.entries(ctx, hub.EntryQuery{Type: kindOf(wire.Thread), Prefix: prefix, Limit: 500}, func(e hub.Entry) (bool, error) {
		t.speakers[e.Key[len(prefix):]] = struct{}{}
		return len(t.speakers) < mostSpeakers, nil
	})
	return t, err
}

// publicKinds are in the order of a row's counts.
var publicKinds = [...]wire.Kind{wire.Say, wire.Capability, wire.Receipt, wire.Trace}

// addRow counts a conversation.
func (t *tally) addRow(surface wire.Surface, row *work.Row) {
	t.conversations[surface]++
	t.all += row.Messages
	t.openWork[surface] += row.OpenWork
	if surface != wire.Thread {
		return
	}
	n := 0
	for i, count := range row.Public {
		if i < len(publicKinds) {
			t.kinds[publicKinds[i]] += count
			n += count
		}
	}
	if n > 0 && (t.messages == 0 || row.LastPublicAt > t.lastAt || row.LastPublicAt == t.lastAt && row.LastPublicID > t.lastID) {
		t.lastAt, t.lastID, t.lastIn, t.preview = row.LastPublicAt, row.LastPublicID, row.ID, row.PublicPreview
		t.long = row.Long.Has(work.PublicPreview)
	}
	t.messages += n
}

// lastSaid returns the text of the newest public message; a long text is read from the
// log.
func (r *netChannel) lastSaid(ctx context.Context, s *snapshot) (string, error) {
	if !s.long {
		return s.preview, nil
	}
	found, err := r.find(ctx, thread.Type, s.lastIn, s.lastID)
	for _, m := range found {
		if m.envelope.ID == s.lastID && m.envelope.To == "" && m.envelope.TS == s.lastAt {
			return m.envelope.Preview(), nil
		}
	}
	return s.preview, err
}
