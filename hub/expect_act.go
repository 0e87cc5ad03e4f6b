package hub

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// typeRemoved tells a channel that a participant may not speak any more.
const typeRemoved = envelope.TypeRemoved

// action is what a handler does, in the batch that writes down the violation.
type action func(b *batch, v Violation) error

// actions are the built-in handlers by name; warn, notify and notify_channel are the same.
var actions = map[string]action{
	"audit":          func(*batch, Violation) error { return nil },
	"notify_channel": (*batch).notify,
	"notify":         (*batch).notify,
	"warn":           (*batch).notify,
	"auto_close":     (*batch).autoClose,
	"hide":           (*batch).hide,
	"remove":         (*batch).remove,
}

// actionOf finds a handler by name; one from the options replaces a built-in one.
// Nil means that there is none.
func (h *Hub) actionOf(name string) action {
	own, known := h.opts.Handlers[name]
	if !known {
		return actions[name]
	}
	if own == nil {
		return nil
	}
	return func(b *batch, v Violation) error {
		id := b.ch.id
		b.then = append(b.then, func() {
			if err := own.Handle(context.Background(), h, id, v); err != nil {
				h.log.Error("handler failed", "on_violation", name, "channel_id", id, "error", err)
			}
		})
		return nil
	}
}

// notify tells everyone in the channel, the creator too.
func (b *batch) notify(v Violation) error {
	buf := &jsonbuf.Buffer{}
	buf.Open('{')
	buf.Key("expectation").String(v.Expectation.Name)
	buf.Key("violators").Strings(v.Violators)
	buf.Key("detail").Object(v.Detail)
	buf.Close('}')
	data, err := buf.Result()
	if err != nil {
		return err
	}
	return b.hubEnvelope(envelope.TypeExpectationViolated, data, b.meta.IDs())
}

func (b *batch) autoClose(v Violation) error {
	return b.end(channel.Closed, violatedReason(v))
}

func violatedReason(v Violation) string { return "expectation_violated:" + v.Expectation.Name }

// hide holds live deliveries back from the violators until they speak again.
func (b *batch) hide(v Violation) error {
	for _, agent := range v.Violators {
		m := b.currentMarks()
		if !b.meta.Has(agent) || m.Hides(agent) {
			continue
		}
		b.sideNote(schema.SideRecord{Kind: schema.SideHidden, Agent: agent}, nil)
		b.note("participant_hidden", b.meta, v.Expectation.Name, agent)
	}
	return nil
}

// remove bars the violators from the channel permanently, and writes that to it.
func (b *batch) remove(v Violation) error {
	for _, agent := range v.Violators {
		m := b.currentMarks()
		if !b.meta.Has(agent) || m.Bars(agent) {
			continue
		}
		buf := &jsonbuf.Buffer{}
		buf.Open('{').Key("agent_id").String(agent).Key("reason").String(violatedReason(v)).Close('}')
		data, err := buf.Result()
		if err != nil {
			return err
		}
		if err := b.hubEnvelope(typeRemoved, data, nil); err != nil {
			return err
		}
		b.tell(b.meta.IDs())
		b.sideNote(schema.SideRecord{Kind: schema.SideRemoved, Agent: agent}, nil)
		b.note("participant_removed", b.meta, violatedReason(v), agent)
	}
	return nil
}

// Evaluator evaluates expectations with a name that the hub does not know, or replaces a
// built-in one. It must not change anything, and is called with the channel locked.
type Evaluator interface {
	Evaluate(x channel.Expectation, c Case) Verdict
}

// Case is a channel as an evaluator sees it.
type Case struct {
	Metadata *channel.Metadata
	State    channel.State
	Log      func() iter.Seq2[*envelope.Envelope, error] // from its first envelope
	Now      time.Time
}

// Verdict is what an evaluator found.
type Verdict struct {
	Violated  bool
	Violators []string // empty: the channel as a whole
	Detail    []byte   // a JSON object, or nil
	// Next is when to evaluate again, if nothing happens in the channel before;
	// zero is at the next sweep.
	Next time.Time
}

// Handler handles violations under a name that the hub does not know, or replaces a
// built-in one. It is called once for each violation, after its record is durable. Its
// result is ignored. It may call the hub.
type Handler interface {
	Handle(ctx context.Context, h *Hub, channelID string, v Violation) error
}

// violatedCustom calls a custom evaluator. If it panics, nothing is violated.
func (b *batch) violatedCustom(ctx context.Context, r *rule, now time.Time) (v Violation, ok bool) {
	var verdict Verdict
	b.hub.hooks.isolated(func() {
		verdict = r.custom.Evaluate(r.Expectation, Case{
			Metadata: b.meta, State: b.state, Now: now.UTC(),
			Log: func() iter.Seq2[*envelope.Envelope, error] { return b.hub.Log(ctx, b.ch.id, 0, 0) },
		})
	})
	next := expect.InstantOf(verdict.Next)
	if next <= expect.InstantOf(now) {
		next = expect.InstantOf(now) + 1
	}
	if b.custom.IsZero() || next < b.custom {
		b.custom = next
	}
	if !verdict.Violated {
		return Violation{}, false
	}
	found := slices.DeleteFunc(slices.Clone(verdict.Violators), func(agent string) bool { return !r.Concerns(b.meta, agent) })
	if len(found) == 0 && len(verdict.Violators) > 0 {
		return Violation{}, false
	}
	detail := object(verdict.Detail)
	if detail.Kind() != '{' || !detail.IsValid() {
		detail = object(nil)
	}
	return Violation{Expectation: r.Expectation, Violators: found, Detail: detail}, true
}
