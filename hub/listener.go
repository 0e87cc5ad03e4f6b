package hub

import (
	"cmp"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/tracing"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/task"
)

// Listener is called with what happened once it is durable, in order for each channel. It
// runs on the hub's delivery path: it must return soon, and it cannot prevent anything.
// Embed NoopListener to implement only some methods.
type Listener interface {
	EnvelopePosted(e *envelope.Envelope, m *channel.Metadata)
	EnvelopeRejected(e *envelope.Envelope, err error)
	DispatchFailed(e *envelope.Envelope, recipient string, err error)
	ChannelEvent(ev ChannelEvent)
	AgentEvent(ev AgentEvent)
	ExpectationFired(channelID string, v Violation)
	TurnFailed(channelID, agent, envelopeID, message string)
	TaskEvent(ev TaskEvent)
	InboxPressure(agent string, pending, limit int64)
}

// ChannelEvent tells of a channel's life: created, opened, closed, expired,
// deleted, participant_hidden or participant_removed. The metadata of a deleted
// one are the last it had.
type ChannelEvent struct {
	Channel  string
	Kind     string
	Metadata *channel.Metadata
	Reason   string
	Agent    string // the agent it concerns; empty: all
	At       time.Time
}

// AgentEvent tells of an identity's life: registered, unregistered,
// resume_set, skill_set, rule_set or observation_recorded.
type AgentEvent struct {
	Agent      string
	Kind       string
	Passport   *identity.Passport
	Resume     *identity.Resume
	Rule       *identity.Rule
	Removed    bool // skill_set, operator_rule_set: it was removed
	Capability string
	Outcome    identity.Outcome
	At         time.Time
}

// TaskEvent tells of a task's end, and whatever else a client reports of one.
type TaskEvent struct {
	Task       string
	Kind       string
	Owner      string
	Channel    string
	Reason     string
	Capability string
	Outcome    string
	StartedAt  time.Time
	At         time.Time
	Payload    []byte // as reported by a client; a JSON object
}

// NoopListener ignores every event.
type NoopListener struct{}

func (NoopListener) EnvelopePosted(*envelope.Envelope, *channel.Metadata)    {}
func (NoopListener) EnvelopeRejected(*envelope.Envelope, error)              {}
func (NoopListener) DispatchFailed(*envelope.Envelope, string, error)        {}
func (NoopListener) ChannelEvent(ChannelEvent)                               {}
func (NoopListener) AgentEvent(AgentEvent)                                   {}
func (NoopListener) ExpectationFired(string, Violation)                      {}
func (NoopListener) TurnFailed(channelID, agent, envelopeID, message string) {}
func (NoopListener) TaskEvent(TaskEvent)                                     {}
func (NoopListener) InboxPressure(agent string, pending, limit int64)        {}

// hooks calls every listener. A panic in one is logged and does not affect the
// others.
type hooks struct {
	mu        sync.RWMutex
	listeners []Listener
	tracing   Listener // told first, and not counted; nil: none
	log       *slog.Logger
}

func (h *hooks) init(listeners []Listener, log *slog.Logger) {
	h.listeners = append([]Listener(nil), listeners...)
	h.log = log
}

// Listen adds a listener to a running hub.
func (h *Hub) Listen(l Listener) {
	h.hooks.mu.Lock()
	defer h.hooks.mu.Unlock()
	h.hooks.listeners = append(h.hooks.listeners[:len(h.hooks.listeners):len(h.hooks.listeners)], l)
}

func (h *hooks) each(tell func(Listener)) {
	h.mu.RLock()
	listeners := h.listeners
	h.mu.RUnlock()
	if h.tracing != nil {
		h.isolated(func() { tell(h.tracing) })
	}
	for _, l := range listeners {
		h.isolated(func() { tell(l) })
	}
}

func (h *hooks) isolated(call func()) {
	defer func() {
		if r := recover(); r != nil {
			h.log.Error("listener failed", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	call()
}

// count is how many listen; the audit is always one of them.
func (h *hooks) count() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.listeners) + 1
}

// traceListener passes a hub's events on to its spans.
type traceListener struct {
	NoopListener
	spans *tracing.Spans
}

func (t traceListener) ChannelEvent(ev ChannelEvent) {
	switch ev.Kind {
	case "created":
		t.spans.ChannelCreated(ev.Channel, ev.Metadata.Manifest.Type, ev.Metadata.Creator, ev.At)
	case "opened":
		t.spans.ChannelOpened(ev.Channel, ev.At)
	case "closed", "expired":
		t.spans.ChannelEnded(ev.Channel, ev.Kind, ev.Reason, ev.At)
	}
}

func (t traceListener) ExpectationFired(channelID string, v Violation) {
	t.spans.ChannelEvent(channelID, "expectation."+v.Expectation.Name,
		attribute.String("ag2.expectation.on_violation", v.Expectation.OnViolation),
		attribute.StringSlice("ag2.expectation.violators", v.Violators))
}

func (t traceListener) EnvelopeRejected(e *envelope.Envelope, err error) {
	t.spans.ChannelError(e.Channel, "envelope_rejected", string(fault.CodeOf(err)), err.Error())
}

func (t traceListener) DispatchFailed(e *envelope.Envelope, _ string, err error) {
	t.spans.ChannelError(e.Channel, "dispatch_failed", string(fault.CodeOf(err)), err.Error())
}

func (t traceListener) AgentEvent(ev AgentEvent) {
	switch ev.Kind {
	case "registered":
		t.spans.AgentRegistered(ev.Agent, ev.Passport.Name, ev.At)
	case "unregistered":
		t.spans.AgentUnregistered(ev.Agent, ev.At)
	case "resume_set":
		t.spans.AgentChanged(ev.Agent, "agent.resume_set", ev.At, attribute.String("ag2.agent.resume_source", "tenant"))
	case "observation_recorded":
		t.spans.AgentChanged(ev.Agent, "agent.resume_set", ev.At, attribute.String("ag2.agent.resume_source", "observed"),
			attribute.String("ag2.agent.capability", ev.Capability), attribute.String("ag2.agent.outcome", string(ev.Outcome)))
	case "skill_set":
		t.spans.AgentChanged(ev.Agent, "agent.skill_set", ev.At, attribute.Bool("ag2.agent.skill_removed", ev.Removed))
	case "rule_set":
		t.spans.AgentChanged(ev.Agent, "agent.rule_set", ev.At)
	}
}

func (t traceListener) InboxPressure(agent string, pending, limit int64) {
	t.spans.InboxPressure(agent, pending, limit)
}

func (t traceListener) TaskEvent(ev TaskEvent) {
	if !task.State(ev.Kind).Terminal() && ev.Kind != "mirror_failed" {
		return
	}
	t.spans.TaskEnded(tracing.Task{
		ID: ev.Task, Owner: ev.Owner, Channel: ev.Channel, Capability: ev.Capability,
		Outcome: cmp.Or(ev.Outcome, ev.Kind), Reason: ev.Reason, StartedAt: ev.StartedAt, EndedAt: ev.At,
	})
}

// failSpans ends the spans of a batch that was not stored.
func (h *Hub) failSpans(items []item, err error) {
	for i := range items {
		items[i].span.Fail(h.now(), err)
	}
}

// syncedSpans notes in the spans of a batch that it is durable.
func (h *Hub) syncedSpans(items []item) {
	for i := range items {
		items[i].span.Phase(tracing.Sync, h.now)
	}
}

// noteTurn adds to an envelope's span the turn that the envelope takes, if any: a turn is
// over when the adapter expects something else.
func (b *batch) noteTurn(span *tracing.EnvelopeSpan, before channel.State, e *envelope.Envelope) {
	turn, ok := b.ch.adapter.Expected(b.meta, before)
	if !ok || turn.Agent != e.Sender {
		return
	}
	if next, ok := b.ch.adapter.Expected(b.meta, b.state); ok && next == turn {
		return
	}
	since := b.meta.CreatedAt
	if turn.Trigger != "" && !b.watch.Triggered.IsZero() {
		since = b.watch.Triggered.Time()
	}
	span.Took(tracing.Turn{Channel: b.ch.id, Agent: e.Sender, Trigger: turn.Trigger, Since: since})
}
