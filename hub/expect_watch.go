package hub

import (
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// watch is a channel's state of expectations: what they are measured by, and the
// plan that says what is expected.
type watch struct {
	expect.Watch
	plan *plan
}

// after folds one more envelope.
func (w watch) after(a channel.Adapter, m *channel.Metadata, s channel.State, e *envelope.Envelope) watch {
	w.Watch = w.After(a, m, s, e, w.plan != nil && w.plan.replies)
	return w
}

// reschedule moves the channel's next check of its expectations if the batch makes
// it earlier. If it becomes later, the check that runs too early moves it, so that
// most envelopes write nothing here.
func (b *batch) reschedule() error {
	next := b.nextCheck()
	switch {
	case b.meta.State.Terminal() || b.checking:
	case next == expect.Never || !b.watch.NextCheck.IsZero() && b.watch.NextCheck <= next:
		return nil
	}
	b.scheduleCheck(next)
	return nil
}

// scheduleCheck moves the channel's entry in the due index.
func (b *batch) scheduleCheck(next expect.Instant) {
	if next == expect.Never {
		next = 0
	}
	last := b.watch.NextCheck
	if next == last {
		return
	}
	b.sideNote(schema.SideRecord{Kind: schema.SideCheck, Due: int64(next)}, func(r *journal.Record) {
		if !last.IsZero() {
			r.Remove = append(r.Remove, schema.DueKey(schema.DueExpectation, last.Time(), b.ch.id))
		}
		if !next.IsZero() {
			r.Put = append(r.Put, journal.IndexPut{Key: schema.DueKey(schema.DueExpectation, next.Time(), b.ch.id)})
		}
	})
	b.watch.NextCheck = next
}

// watchOf returns the watch of a channel of which nothing is folded yet.
func (h *Hub) watchOf(m *channel.Metadata, nextCheck expect.Instant) watch {
	return watch{Watch: expect.Watch{NextCheck: nextCheck}, plan: h.planOf(m)}
}
