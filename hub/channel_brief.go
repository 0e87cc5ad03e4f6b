package hub

import (
	"context"
	"slices"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Brief is a short description of a channel. Reading it changes nothing: unlike Turns, it
// does not count as handing over a turn.
type Brief struct {
	Meta     *channel.Metadata
	Position journal.Position // where its history ends
	Turn     *Expected        // nil: nobody in particular is expected to speak
	// Taken and Most count turns where the adapter does; Most is 0 without a cap.
	Counted     bool
	Taken, Most int
	Requests    int   // that are open
	Broken      error // why the channel is quarantined
	Hidden      []string
	Removed     []string

	expectations []ExpectationState
}

// Expected is a turn that an agent is to take.
type Expected struct {
	Channel string
	Agent   string
	Trigger string    // the envelope to answer; empty before anyone has spoken
	Since   time.Time // since when it is its turn
	Handed  time.Time // when it received what to answer; zero: not yet, as far as this process knows
	Due     time.Time // zero: never
	Overdue bool
}

// ExpectationState is one expectation of a channel, with the participants it waits for.
type ExpectationState struct {
	Name        string
	OnViolation string
	Within      time.Duration
	Waits       []ExpectationWait
}

// ExpectationWait is a participant that an expectation waits for; agent is empty for the
// channel as a whole.
type ExpectationWait struct {
	Agent      string
	Since, Due time.Time
	Fired      bool
}

// Expectations is what is expected of the channel.
func (b *Brief) Expectations() []ExpectationState { return b.expectations }

// Brief returns a short description of a channel. A channel that has ended is not
// folded for it, so its Brief has neither a turn nor counts.
func (h *Hub) Brief(ctx context.Context, id string) (*Brief, error) {
	if h.channels.get(id) == nil {
		m, err := h.Channel(ctx, id)
		if err != nil {
			return nil, err
		}
		if m.State.Terminal() {
			b := &Brief{Meta: m}
			b.Position, err = h.Position(ctx, id)
			return b, err
		}
	}
	b, err := answer(ctx, h, id, func(ch *loadedChannel) (*Brief, error) { return h.briefOf(ch), nil })
	if err != nil {
		return nil, err
	}
	b.Position, err = h.Position(ctx, id)
	return b, err
}

// briefOf reads a loaded channel, which is locked.
func (h *Hub) briefOf(ch *loadedChannel) *Brief {
	b := &Brief{Meta: ch.meta, Broken: ch.broken()}
	if ch.extras != nil {
		b.Requests, b.Hidden, b.Removed = len(ch.extras.marks.Open), ch.extras.marks.Hidden, ch.extras.marks.Removed
	}
	if ch.meta.State.Terminal() || ch.state == nil || ch.broken() != nil {
		return b
	}
	if counts, ok := ch.adapter.(channel.TurnCounter); ok {
		b.Taken, b.Most, b.Counted = counts.TurnCount(ch.meta, ch.state)
	}
	b.Turn = h.expectedIn(ch)
	b.expectations = h.expectationsIn(ch)
	return b
}

// expectedIn is the turn of a loaded channel, which is locked.
func (h *Hub) expectedIn(ch *loadedChannel) *Expected {
	if ch.state == nil || ch.adapter == nil || ch.meta.State != channel.Active {
		return nil
	}
	turn, ok := ch.adapter.Expected(ch.meta, ch.state)
	if !ok {
		return nil
	}
	t := &Expected{Channel: ch.id, Agent: turn.Agent, Trigger: turn.Trigger, Since: ch.meta.CreatedAt}
	if turn.Trigger != "" && !ch.watch.Triggered.IsZero() {
		t.Since = ch.watch.Triggered.Time()
	}
	t.Handed = ch.seats.Handed(ch.meta, turn.Agent, turn.Trigger)
	if ch.watch.plan == nil {
		return t
	}
	for i := range ch.watch.plan.rules {
		r := &ch.watch.plan.rules[i]
		if r.Name != "turn_within" || r.act == nil {
			continue
		}
		for _, wait := range r.Awaited(h.situationOf(ch), nil) {
			if due := h.dueOf(r, wait).Time(); t.Due.IsZero() || due.Before(t.Due) {
				t.Due, t.Overdue = due, due.Before(h.now())
			}
		}
	}
	return t
}

// expectationsIn is what is expected of a loaded channel, which is locked.
func (h *Hub) expectationsIn(ch *loadedChannel) (list []ExpectationState) {
	if ch.watch.plan == nil {
		return nil
	}
	var fired []string
	if ch.extras != nil {
		fired = ch.extras.marks.Fired
	}
	for i := range ch.watch.plan.rules {
		r := &ch.watch.plan.rules[i]
		x := ExpectationState{Name: r.Name, OnViolation: r.OnViolation, Within: r.Within}
		for _, wait := range r.Awaited(h.situationOf(ch), nil) {
			x.Waits = append(x.Waits, ExpectationWait{
				Agent: wait.Agent, Since: wait.Since.Time(), Due: h.dueOf(r, wait).Time(), Fired: slices.Contains(fired, r.FiredKey(wait.Agent)),
			})
		}
		list = append(list, x)
	}
	return list
}

// situationOf is a loaded channel as expectations are measured in it.
func (h *Hub) situationOf(ch *loadedChannel) expect.Situation {
	s := expect.Situation{
		Adapter: ch.adapter, Meta: ch.meta, State: ch.state, Watch: ch.watch.Watch, Now: h.now(), Humans: &h.registry,
	}
	if ch.extras != nil {
		s.Asked = ch.extras.marks.Asked
	}
	return s
}

// maxLast is how many envelopes are looked at for the last that a reader may see.
const maxLast = 16

// LastOf returns the last envelope of a channel that sees accepts, of the last few;
// nil if there is none. A nil sees accepts all.
func (h *Hub) LastOf(ctx context.Context, channelID string, sees func(*envelope.Envelope) bool) (*envelope.Envelope, error) {
	limit := maxLast
	if sees == nil {
		limit = 1
	}
	page, err := h.journal.Read(ctx, h.tenant.Channel(channelID).History(), journal.ReadOptions{Backward: true, Limits: journal.Limits{Entries: limit}})
	if err != nil {
		return nil, unavailable(err)
	}
	for _, entry := range page.Entries {
		e, err := schema.DecodeEnvelope(entry)
		if err != nil {
			return nil, err
		}
		if sees == nil || sees(e) {
			return e, nil
		}
	}
	return nil, nil
}
