package hub

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
)

// plan is what is expected of a channel: its manifest's list, or that of the
// knob which replaces it. Channels of the same list share one.
type plan struct {
	rules   []rule
	replies bool // somebody measures replies
	custom  bool // an evaluator that is not ours judges
}

// rule is one expectation, read.
type rule struct {
	channel.Expectation
	index   int
	within  time.Duration
	limit   jsontext.Value // within, as it was written
	measure measure        // nil: not ours to measure
	custom  Evaluator
	act     action // nil: nobody acts, so nothing happens
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
// nothing is expected.
func (h *Hub) planOf(m *channel.Metadata) *plan {
	p, err := h.readPlan(m)
	if err != nil {
		h.log.Error("expectations cannot be read and are ignored", "channel_id", m.ID, "error", err)
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
		r := rule{Expectation: x, index: i, act: h.actionOf(x.OnViolation)}
		own, known := h.opts.Evaluators[x.Name]
		switch m, builtIn := measures[x.Name]; {
		case known:
			r.custom = own
			p.custom = p.custom || own != nil
		case builtIn:
			r.measure = m.measure
			p.replies = p.replies || x.Name == "reply_within"
			var err error
			if r.within, r.limit, err = within(x, m.seconds); err != nil {
				return nil, err
			}
		}
		p.rules = append(p.rules, r)
	}
	return p, nil
}

// within reads how long an expectation waits: params.seconds, any number.
func within(x channel.Expectation, standard int) (time.Duration, jsontext.Value, error) {
	var params struct {
		Seconds jsontext.Value `json:"seconds"`
	}
	if len(x.Params) > 0 {
		if err := json.Unmarshal(x.Params, &params, jsontext.AllowDuplicateNames(true)); err != nil {
			return 0, nil, fault.Wrap(fault.Invalid, err, "params of expectation %q are refused: %v", x.Name, err)
		}
	}
	text := params.Seconds
	if len(text) == 0 || text.Kind() == 'n' {
		text = jsontext.Value(strconv.Itoa(standard))
	}
	seconds, err := strconv.ParseFloat(string(text), 64)
	if text.Kind() != '0' || err != nil && seconds == 0 {
		return 0, nil, fault.New(fault.Invalid, "params.seconds of expectation %q is %s; a number of seconds is wanted", x.Name, text)
	}
	switch ns := seconds * float64(time.Second); {
	case ns <= 0:
		return 0, text, nil
	case ns >= math.MaxInt64:
		return math.MaxInt64, text, nil
	default:
		return time.Duration(ns), text, nil
	}
}

// concerns reports whether an expectation holds for a participant.
func (r *rule) concerns(m *channel.Metadata, agent string) bool {
	if r.AppliesTo == nil || slices.Contains(r.AppliesTo, agent) {
		return true
	}
	p, ok := m.Participant(agent)
	return ok && slices.Contains(r.AppliesTo, string(p.Role))
}

// firedKey names what fires at most once in a channel's life.
func (r *rule) firedKey(agent string) string {
	return strconv.Itoa(r.index) + "/" + r.Name + "/" + agent
}

// nextCheck is when the first of what is expected may be due; never if nothing
// is.
func (b *batch) nextCheck() instant {
	next := never
	if b.meta.State.Terminal() || b.watch.plan == nil || b.state == nil {
		return next
	}
	if !b.custom.IsZero() {
		next = b.custom
	} else if b.watch.plan.custom {
		next = instantOf(b.now)
	}
	var fired []string
	if len(b.watch.plan.rules) > 0 {
		fired = b.currentMarks().fired
	}
	for i := range b.watch.plan.rules {
		r := &b.watch.plan.rules[i]
		if r.measure == nil || r.act == nil {
			continue
		}
		for _, x := range r.measure(b, r, b.waits[:0]) {
			if due := b.due(r, x); due < next && (len(fired) == 0 || !slices.Contains(fired, r.firedKey(x.agent))) {
				next = due
			}
		}
	}
	return next
}
