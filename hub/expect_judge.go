package hub

import (
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Violation is an expectation that was not met.
type Violation struct {
	Expectation channel.Expectation
	Violators   []string // empty: the channel as a whole
	Detail      []byte   // a JSON object
}

// Bounds of one batch of a check; the rest goes into another batch at once.
const (
	bulkRecords = journal.MaxBatchRecords / 4
	bulkBytes   = journal.MaxBatchBytes / 4
)

// checkExpectations checks one channel and handles what is due in one batch, which also
// sets the next check. Again is true if more is due at once.
func (h *Hub) checkExpectations(ctx context.Context, id string, due []byte, now time.Time) (l checked, again bool, err error) {
	var basis *Pending
	for {
		if _, err := basis.durable(ctx); err != nil {
			return checked{}, false, err
		}
		basis = nil
		l.pending, err = h.writeBatch(ctx, id, func(b *batch) error {
			if b.state == nil && !b.meta.State.Terminal() {
				return errNothing // it cannot be checked, and stays due
			}
			if basis = b.unseen(); basis != nil {
				return errNothing
			}
			if string(schema.DueKey(schema.DueExpectation, b.watch.NextCheck.Time(), id)) != string(due) {
				return errNothing // moved since it was found due
			}
			b.checking = true
			if err := b.judge(ctx, now); err != nil {
				return err
			}
			if l.then, again = b.then, b.full; b.idle() {
				return errNothing
			}
			return nil
		})
		if basis == nil {
			return l, again, fault.IgnoreNotFound(unavailable(err))
		}
	}
}

// unseen returns the channel's pending batch if a custom evaluator reads the log,
// where that batch cannot be seen yet.
func (b *batch) unseen() *Pending {
	if last := b.ch.last; b.watch.plan.custom && last != nil && !last.finished() {
		return last
	}
	return nil
}

// judge fires what is due, in the order of the list. The end of the channel ends it.
func (b *batch) judge(ctx context.Context, now time.Time) error {
	if b.meta.State.Terminal() || b.watch.plan == nil {
		return nil
	}
	for i := range b.watch.plan.rules {
		r := &b.watch.plan.rules[i]
		if r.act == nil {
			continue
		}
		v, ok := b.violated(ctx, r, now)
		if !ok {
			continue
		}
		for _, agent := range orChannel(v.Violators) {
			if slices.Contains(b.currentMarks().Fired, r.FiredKey(agent)) {
				continue
			}
			if b.full = b.bulky(); b.full {
				return nil
			}
			if err := b.fire(r, agent, v); err != nil {
				return err
			}
			if b.meta.State.Terminal() {
				return nil
			}
		}
	}
	return nil
}

// orChannel is whom to fire for: the channel as a whole is "".
func orChannel(violators []string) []string {
	if len(violators) == 0 {
		return []string{""}
	}
	return violators
}

func (b *batch) bulky() bool {
	records, size := 0, 0
	for _, list := range [][]journal.Record{b.history, b.side, b.audits} {
		records += len(list)
		for i := range list {
			size += list[i].Size()
		}
	}
	return records >= bulkRecords || size >= bulkBytes
}

// violated evaluates one expectation.
func (b *batch) violated(ctx context.Context, r *rule, now time.Time) (Violation, bool) {
	if r.custom != nil {
		return b.violatedCustom(ctx, r, now)
	}
	at := expect.InstantOf(now)
	var violators []string
	var since expect.Instant
	violated := false
	for _, x := range r.Awaited(b.situation(), b.waits[:0]) {
		if b.due(r, x) > at {
			continue
		}
		violated, since = true, x.Since
		if x.Agent != "" {
			violators = append(violators, x.Agent)
		}
	}
	if !violated {
		return Violation{}, false
	}
	return Violation{Expectation: r.Expectation, Violators: violators, Detail: r.Detail(violators, at-since)}, true
}

// fire records that an expectation was violated, and then calls its action.
func (b *batch) fire(r *rule, agent string, v Violation) error {
	violators := v.Violators
	if violators == nil {
		violators = []string{}
	}
	if err := b.audit("expectation_violated", fields{
		"channel_id": b.ch.id, "expectation": r.Name, "on_violation": r.OnViolation,
		"params": object(r.Params), "violators": violators, "detail": object(v.Detail),
	}); err != nil {
		return err
	}
	b.sideNote(schema.SideRecord{Kind: schema.SideFired, Fired: []string{r.FiredKey(agent)}}, nil)
	h, id := b.hub, b.ch.id
	b.before = append(b.before, func() { h.hooks.each(func(l Listener) { l.ExpectationFired(id, v) }) })
	return r.act(b, v)
}

// object is a JSON object's text as it is; none is {}.
func object(raw []byte) jsontext.Value {
	if len(raw) == 0 {
		return jsontext.Value("{}")
	}
	return jsontext.Value(raw)
}

// SweepExpectations checks the channels whose expectations may be due, and returns
// how many it checked.
func (h *Hub) SweepExpectations(ctx context.Context) int {
	now := h.now()
	n := 0
	var ordered []checked
	finish := func() {
		for _, l := range ordered {
			h.finishCheck(ctx, l)
		}
		ordered = ordered[:0]
	}
	scan := schema.DueBy(schema.DueExpectation, now)
	for entry, err := range journal.IndexAll(ctx, h.journal, scan) {
		if err != nil {
			h.log.Error("sweep failed", "kind", schema.DueExpectation, "error", err)
			break
		}
		id := schema.LastPart(entry.Key)
		n++
		for again := true; again; {
			l, more, err := h.checkExpectations(ctx, id, entry.Key, now)
			if err != nil {
				h.log.Error("sweep could not act", "kind", schema.DueExpectation, "id", id, "error", err)
				break
			}
			again, ordered = more, append(ordered, l)
		}
		if len(ordered) >= 256 { // many share one sync, and memory stays bounded
			finish()
		}
	}
	finish()
	return n
}

// checked is a check whose batch is pending.
type checked struct {
	pending *Pending
	then    []func()
}

// finishCheck calls the custom handlers once the violation is durable.
func (h *Hub) finishCheck(ctx context.Context, l checked) {
	if l.pending == nil {
		return
	}
	if _, err := l.pending.Wait(ctx); err != nil {
		if fault.CodeOf(err) != fault.Unavailable {
			h.log.Error("sweep was not stored", "kind", schema.DueExpectation, "error", err)
		}
		return
	}
	for _, call := range l.then {
		h.hooks.isolated(call)
	}
}
