package hub

import (
	"slices"
	"sync"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// plan is a channel's list of expectations: its manifest's, or that of the knob
// which replaces it. Channels with the same list share a plan.
type plan struct {
	rules   []rule
	replies bool // a rule measures replies
	custom  bool // a custom evaluator judges
}

// rule is one expectation, and what the hub does about it.
type rule struct {
	expect.Rule
	custom Evaluator
	act    action // nil: nobody acts, so nothing happens
}

// Bounds of the lists that are kept; others are read again each time.
const (
	maxPlans    = 1024
	maxPlanText = 4096
)

// plans keeps one copy of each list of expectations.
type plans struct {
	mu         sync.Mutex
	byManifest map[*channel.Manifest]*plan
	byText     map[string]*plan
}

// planOf returns what is expected of a channel. A list that cannot be read was
// refused when the channel was opened, or comes from an older adapter: then
// nothing is expected, as where the hub ignores expectations.
func (h *Hub) planOf(m *channel.Metadata) *plan {
	p, err := h.readPlan(m)
	if err != nil {
		h.log.Error("expectations cannot be read and are ignored", "channel_id", m.ID, "error", err)
		return &plan{}
	}
	if h.opts.IgnoreExpectations {
		return &plan{}
	}
	return p
}

func (h *Hub) readPlan(m *channel.Metadata) (*plan, error) {
	text, err := m.ExpectationsKnob()
	if err != nil {
		return nil, err
	}
	h.plans.mu.Lock()
	defer h.plans.mu.Unlock()
	if text == nil {
		if p := h.plans.byManifest[m.Manifest]; p != nil {
			return p, nil
		}
		p, err := h.makePlan(m.Manifest.Expectations)
		if err == nil && len(h.plans.byManifest) < maxPlans {
			if h.plans.byManifest == nil {
				h.plans.byManifest = map[*channel.Manifest]*plan{}
			}
			h.plans.byManifest[m.Manifest] = p
		}
		return p, err
	}
	if p := h.plans.byText[string(text)]; p != nil {
		return p, nil
	}
	list, err := channel.DecodeExpectations(text)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "knob expectations is refused: %v", err)
	}
	p, err := h.makePlan(list)
	if err == nil && len(h.plans.byText) < maxPlans && len(text) <= maxPlanText {
		if h.plans.byText == nil {
			h.plans.byText = map[string]*plan{}
		}
		h.plans.byText[string(text)] = p
	}
	return p, err
}

func (h *Hub) makePlan(list []channel.Expectation) (*plan, error) {
	p := &plan{rules: make([]rule, 0, len(list))}
	for i, x := range list {
		r := rule{act: h.actionOf(x.OnViolation)}
		if custom, known := h.opts.Evaluators[x.Name]; known {
			r.Rule, r.custom = expect.Unmeasured(x, i), custom
			p.custom = p.custom || custom != nil
		} else {
			var err error
			if r.Rule, err = expect.New(x, i); err != nil {
				return nil, err
			}
			p.replies = p.replies || r.Replies()
		}
		p.rules = append(p.rules, r)
	}
	return p, nil
}

// nextCheck is when the first expectation may be due, or expect.Never.
func (b *batch) nextCheck() expect.Instant {
	next := expect.Never
	if b.meta.State.Terminal() || b.watch.plan == nil || b.state == nil {
		return next
	}
	if !b.custom.IsZero() {
		next = b.custom
	} else if b.watch.plan.custom {
		next = expect.InstantOf(b.now)
	}
	var fired []string
	if len(b.watch.plan.rules) > 0 {
		fired = b.currentMarks().Fired
	}
	for i := range b.watch.plan.rules {
		r := &b.watch.plan.rules[i]
		if !r.Measured() || r.act == nil {
			continue
		}
		for _, x := range r.Awaited(b.situation(), b.waits[:0]) {
			if due := b.due(r, x); due < next && (len(fired) == 0 || !slices.Contains(fired, r.FiredKey(x.Agent))) {
				next = due
			}
		}
	}
	return next
}

// situation is the channel as the batch leaves it.
func (b *batch) situation() expect.Situation {
	return expect.Situation{
		Adapter: b.ch.adapter, Meta: b.meta, State: b.state, Watch: b.watch.Watch, Now: b.now, Humans: &b.hub.registry,
		Asked: b.currentMarks().Asked,
	}
}

// due is when a wait has lasted too long. A wait that became due while no hub ran
// could not end, so it gets a grace period that begins when the hub opens.
func (b *batch) due(r *rule, x expect.Wait) expect.Instant { return b.hub.dueOf(r, x) }

func (h *Hub) dueOf(r *rule, x expect.Wait) expect.Instant {
	due := x.Since.Plus(r.Within)
	if due > h.opened {
		return due
	}
	return max(due, h.opened.Plus(min(r.Within, h.opts.RestartGrace)))
}

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
	if b.scheduling && last.IsZero() {
		b.watch.NextCheck = next // the creation's own side record tells it
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
