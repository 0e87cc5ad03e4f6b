package hub

import (
	"math"
	"slices"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// watch is the state that expectations are measured by, folded together with the
// adapter's state. It is small, because every folded channel has one.
type watch struct {
	content   instant // when somebody last said something
	triggered instant // when what the expected speaker answers was said
	nextCheck instant // when the expectations are checked next: the channel's one entry in the due index
	plan      *plan   // what is expected of the channel
	replies   *[]reply
}

// reply is how one participant stands with what was said to it, in the order
// of the participants.
type reply struct {
	inbound  instant // the last text that reached it
	outbound instant // its own last text
}

// instant is a time in nanoseconds; 0 is none.
type instant int64

// never is later than every deadline.
const never = instant(math.MaxInt64)

func instantOf(t time.Time) instant {
	if t.IsZero() {
		return 0
	}
	return instant(t.UnixNano())
}

func (i instant) Time() time.Time { return time.Unix(0, int64(i)).UTC() }
func (i instant) IsZero() bool    { return i == 0 }

// plus is as far in the future as can be told.
func (i instant) plus(d time.Duration) instant {
	if d > 0 && i > never-instant(d) {
		return never
	}
	return i + instant(d)
}

// after folds one more envelope.
func (w watch) after(a channel.Adapter, m *channel.Metadata, s channel.State, e *envelope.Envelope) watch {
	if envelope.IsContent(e.Type) {
		w.content = instantOf(e.CreatedAt)
	}
	if turn, ok := a.Expected(m, s); ok && turn.Trigger == e.ID {
		w.triggered = instantOf(e.CreatedAt)
	}
	if e.Type == envelope.TypeText && w.plan != nil && w.plan.replies {
		w.replies = heardBy(w.replies, m, e)
	}
	return w
}

// heardBy folds a text into a copy: the batch it is part of may yet fail.
func heardBy(old *[]reply, m *channel.Metadata, e *envelope.Envelope) *[]reply {
	var next []reply
	if old == nil {
		next = make([]reply, len(m.Participants))
	} else {
		next = slices.Clone(*old)
	}
	at := instantOf(e.CreatedAt)
	for i := range next {
		switch agent := m.Participants[i].Agent; {
		case agent == e.Sender:
			next[i].outbound = max(next[i].outbound, at)
		case e.Audience == nil || slices.Contains(e.Audience, agent):
			next[i].inbound = at
		}
	}
	return &next
}

// reschedule moves the channel's next check of its expectations if the batch makes
// it earlier. If it becomes later, the check that runs too early moves it, so that
// most envelopes write nothing here.
func (b *batch) reschedule() error {
	next := b.nextCheck()
	switch {
	case b.meta.State.Terminal() || b.checking:
	case next == never || !b.watch.nextCheck.IsZero() && b.watch.nextCheck <= next:
		return nil
	}
	b.scheduleCheck(next)
	return nil
}

// scheduleCheck moves the channel's entry in the due index.
func (b *batch) scheduleCheck(next instant) {
	if next == never {
		next = 0
	}
	last := b.watch.nextCheck
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
	b.watch.nextCheck = next
}

// watchOf is where the fold of a channel's watch begins.
func (h *Hub) watchOf(m *channel.Metadata, look instant) watch {
	return watch{plan: h.planOf(m), nextCheck: look}
}
