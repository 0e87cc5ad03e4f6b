package hub

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/task"
)

// What tracing hears as a listener becomes spans of channels, identities and
// tasks, and events on them.

// start starts a span that is nobody's child.
func (t *tracing) start(name, kind string, at time.Time, attributes ...attribute.KeyValue) trace.Span {
	return t.startIn(context.Background(), name, kind, at, attributes...)
}

func (t *tracing) startIn(ctx context.Context, name, kind string, at time.Time, attributes ...attribute.KeyValue) trace.Span {
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(at),
		trace.WithAttributes(append(attributes, spanType.String(kind))...))
	return span
}

// ChannelEvent follows a channel from its creation to its end.
func (t *tracing) ChannelEvent(ev ChannelEvent) {
	at := trace.WithTimestamp(ev.At)
	switch ev.Kind {
	case "created":
		t.keep(t.channels, ev.Channel, func() trace.Span {
			return t.start("network.channel "+ev.Metadata.Manifest.Type, "channel", ev.At,
				attribute.String("ag2.network.channel_id", ev.Channel),
				attribute.String("ag2.network.manifest_type", ev.Metadata.Manifest.Type),
				attribute.String("ag2.network.creator_id", ev.Metadata.Creator))
		})
	case "opened":
		if span := t.find(t.channels, ev.Channel); span != nil {
			span.AddEvent("opened", at)
		}
	case "closed", "expired":
		span := t.take(t.channels, ev.Channel)
		if span == nil {
			return
		}
		span.AddEvent(ev.Kind, at, trace.WithAttributes(attribute.String("reason", ev.Reason)))
		if ev.Kind == "expired" {
			span.SetStatus(codes.Error, ev.Reason)
		}
		span.End(at)
	}
}

// onChannel adds an event to a channel's span.
func (t *tracing) onChannel(channelID, name string, attributes ...attribute.KeyValue) {
	if span := t.find(t.channels, channelID); span != nil {
		span.AddEvent(name, trace.WithAttributes(attributes...))
	}
}

func errorAttributes(kind, message string) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("ag2.error.type", kind), attribute.String("ag2.error.message", message)}
}

// ExpectationFired is an event of the channel.
func (t *tracing) ExpectationFired(channelID string, v Violation) {
	t.onChannel(channelID, "expectation."+v.Expectation.Name,
		attribute.String("ag2.expectation.on_violation", v.Expectation.OnViolation),
		attribute.StringSlice("ag2.expectation.violators", v.Violators))
}

// EnvelopeRejected is an event of the channel.
func (t *tracing) EnvelopeRejected(e *envelope.Envelope, err error) {
	t.onChannel(e.Channel, "envelope_rejected", errorAttributes(string(fault.CodeOf(err)), err.Error())...)
}

// DispatchFailed is an event of the channel.
func (t *tracing) DispatchFailed(e *envelope.Envelope, _ string, err error) {
	t.onChannel(e.Channel, "dispatch_failed", errorAttributes(string(fault.CodeOf(err)), err.Error())...)
}

func (t *tracing) turnFailed(channelID, kind, message string) {
	if t.tracer != nil {
		t.onChannel(channelID, "turn_failed", errorAttributes(kind, message)...)
	}
}

// AgentEvent follows an identity from its registration to its end; what
// changes of it is an instant in between.
func (t *tracing) AgentEvent(ev AgentEvent) {
	id := attribute.String("ag2.agent.id", ev.Agent)
	switch ev.Kind {
	case "registered":
		t.keep(t.agents, ev.Agent, func() trace.Span {
			return t.start("agent.lifetime "+ev.Passport.Name, "agent_lifetime", ev.At, id,
				attribute.String("gen_ai.agent.name", ev.Passport.Name))
		})
	case "unregistered":
		if span := t.take(t.agents, ev.Agent); span != nil {
			span.AddEvent("unregistered", trace.WithTimestamp(ev.At))
			span.End(trace.WithTimestamp(ev.At))
		}
	case "resume_set":
		t.instant(ev, "agent.resume_set", id, attribute.String("ag2.agent.resume_source", "tenant"))
	case "observation_recorded":
		t.instant(ev, "agent.resume_set", id, attribute.String("ag2.agent.resume_source", "observed"),
			attribute.String("ag2.agent.capability", ev.Capability), attribute.String("ag2.agent.outcome", string(ev.Outcome)))
	case "skill_set":
		t.instant(ev, "agent.skill_set", id, attribute.Bool("ag2.agent.skill_removed", ev.Removed))
	case "rule_set":
		t.instant(ev, "agent.rule_set", id)
	}
}

// instant is a span without length, in an identity's lifetime if that is known.
func (t *tracing) instant(ev AgentEvent, name string, attributes ...attribute.KeyValue) {
	ctx := context.Background()
	if life := t.find(t.agents, ev.Agent); life != nil {
		ctx = trace.ContextWithSpan(ctx, life)
	}
	t.startIn(ctx, name+" "+ev.Agent, "agent_event", ev.At, attributes...).End(trace.WithTimestamp(ev.At))
}

// InboxPressure is an event of the identity.
func (t *tracing) InboxPressure(agent string, pending, limit int64) {
	if span := t.find(t.agents, agent); span != nil {
		span.AddEvent("inbox_pressure", trace.WithAttributes(
			attribute.Int64("ag2.inbox.pending", pending), attribute.Int64("ag2.inbox.cap", limit)))
	}
}

// TaskEvent tells of a whole task once it has ended.
func (t *tracing) TaskEvent(ev TaskEvent) {
	if !task.State(ev.Kind).Terminal() && ev.Kind != "mirror_failed" {
		return
	}
	begun, name, outcome := ev.StartedAt, ev.Capability, ev.Outcome
	if begun.IsZero() {
		begun = ev.At
	}
	if name == "" {
		name = "task"
	}
	if outcome == "" {
		outcome = ev.Kind
	}
	attributes := []attribute.KeyValue{
		attribute.String("ag2.network.task_id", ev.Task), attribute.String("ag2.network.outcome", outcome),
	}
	for key, value := range map[string]string{
		"ag2.network.capability": ev.Capability, "ag2.network.channel_id": ev.Channel, "ag2.network.owner_id": ev.Owner,
	} {
		if value != "" {
			attributes = append(attributes, attribute.String(key, value))
		}
	}
	span := t.start("network.task "+name, "task", begun, attributes...)
	if outcome == string(task.Completed) {
		span.SetStatus(codes.Ok, "")
	} else {
		span.SetStatus(codes.Error, ev.Reason)
	}
	span.End(trace.WithTimestamp(ev.At))
}
