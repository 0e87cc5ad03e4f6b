package agh

import (
	"context"

	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// tally counts what is public in a channel: messages of threads without an
// addressee.
type tally struct {
	kinds    map[wire.Kind]int
	messages int
	lastAt   int64
	lastID   string
	preview  string
	speakers map[string]struct{}
}

// countTries is how often a channel is counted anew because something was said
// meanwhile; after that, the counts may differ by what was.
const countTries = 5

// mostSpeakers is up to how many speakers of a channel are told apart.
const mostSpeakers = 100_000

// tallyUp counts one stored message.
func (r *netChannel) tallyUp(e *wire.Envelope) {
	if e.Surface != wire.Thread || e.To != "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tally != nil {
		r.tally.add(e)
	}
	r.stored++
}

func (t *tally) add(e *wire.Envelope) {
	t.messages++
	t.kinds[e.Kind]++
	if t.messages == 1 || e.TS > t.lastAt || e.TS == t.lastAt && e.ID > t.lastID {
		t.lastAt, t.lastID, t.preview = e.TS, clone(e.ID), clone(e.Preview())
	}
	if len(t.speakers) < mostSpeakers {
		t.speakers[clone(e.From)] = struct{}{}
	}
}

// public returns the counts of a channel, which are read from its threads' rows
// when they are first asked for.
func (r *netChannel) public(ctx context.Context) (tally, error) {
	r.counting.Lock()
	defer r.counting.Unlock()
	for try := 1; ; try++ {
		r.mu.Lock()
		if r.tally != nil {
			t := *r.tally
			t.kinds = make(map[wire.Kind]int, len(r.tally.kinds))
			for k, n := range r.tally.kinds {
				t.kinds[k] = n
			}
			r.mu.Unlock()
			return t, nil
		}
		before := r.stored
		r.mu.Unlock()
		t, err := r.readTally(ctx)
		if err != nil {
			return tally{}, err
		}
		r.mu.Lock()
		if r.stored == before || try == countTries { // else something was stored while the rows were read
			r.tally = t
		}
		r.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return tally{}, fault.Wrap(fault.Unavailable, err, "gave up counting the messages of %q: %v", r.channel, err)
		}
	}
}

// readTally adds up the rows of a channel's threads.
func (r *netChannel) readTally(ctx context.Context) (*tally, error) {
	t := &tally{kinds: map[wire.Kind]int{}, speakers: map[string]struct{}{}}
	kinds := []wire.Kind{wire.Say, wire.Capability, wire.Receipt, wire.Trace}
	err := r.space.entries(ctx, hub.EntryQuery{Type: thread.Type, Prefix: work.ActivityPrefix(r.channel), Limit: 500}, func(e hub.Entry) (bool, error) {
		row, err := work.ParseRow(e.Value)
		if err != nil {
			return false, fault.Wrap(fault.Internal, err, "%v", err)
		}
		n := 0
		for i, count := range row.Public {
			if i < len(kinds) {
				t.kinds[kinds[i]] += count
				n += count
			}
		}
		if n > 0 && (t.messages == 0 || row.LastPublicAt > t.lastAt) {
			t.lastAt, t.preview = row.LastPublicAt, row.PublicPreview
		}
		t.messages += n
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	prefix := work.SpeakerPrefix(r.channel)
	err = r.space.entries(ctx, hub.EntryQuery{Type: thread.Type, Prefix: prefix, Limit: 500}, func(e hub.Entry) (bool, error) {
		t.speakers[e.Key[len(prefix):]] = struct{}{}
		return len(t.speakers) < mostSpeakers, nil
	})
	return t, err
}
