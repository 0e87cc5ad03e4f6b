package hub

import (
	"cmp"

	"go.opentelemetry.io/otel/attribute"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/tracing"
	"github.com/parley-hub/parley/task"
)

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
