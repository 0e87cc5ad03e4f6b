package tracing

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-hub/parley/task"
)

// ChannelCreated starts the span of a channel.
func (s *Spans) ChannelCreated(id, manifestType, creator string, at time.Time) {
	s.open(s.channels, id, func() trace.Span {
		return s.start("network.channel "+manifestType, "channel", at,
			attribute.String("ag2.network.channel_id", id),
			attribute.String("ag2.network.manifest_type", manifestType),
			attribute.String("ag2.network.creator_id", creator))
	})
}

// ChannelOpened adds an event to the span of a channel.
func (s *Spans) ChannelOpened(id string, at time.Time) {
	if span := s.find(s.channels, id); span != nil {
		span.AddEvent("opened", trace.WithTimestamp(at))
	}
}

// ChannelEnded ends the span of a channel: kind is closed or expired.
func (s *Spans) ChannelEnded(id, kind, reason string, at time.Time) {
	span := s.take(s.channels, id)
	if span == nil {
		return
	}
	span.AddEvent(kind, trace.WithTimestamp(at), trace.WithAttributes(attribute.String("reason", reason)))
	if kind == "expired" {
		span.SetStatus(codes.Error, reason)
	}
	span.End(trace.WithTimestamp(at))
}

// ChannelEvent adds an event to the span of a channel.
func (s *Spans) ChannelEvent(id, name string, attributes ...attribute.KeyValue) {
	if s == nil {
		return
	}
	if span := s.find(s.channels, id); span != nil {
		span.AddEvent(name, trace.WithAttributes(attributes...))
	}
}

// ChannelError adds an event that describes an error.
func (s *Spans) ChannelError(id, name, kind, message string) {
	s.ChannelEvent(id, name, attribute.String("ag2.error.type", kind), attribute.String("ag2.error.message", message))
}

// AgentRegistered starts the span of an identity.
func (s *Spans) AgentRegistered(id, name string, at time.Time) {
	s.open(s.agents, id, func() trace.Span {
		return s.start("agent.lifetime "+name, "agent_lifetime", at,
			attribute.String("ag2.agent.id", id), attribute.String("gen_ai.agent.name", name))
	})
}

// AgentUnregistered ends the span of an identity.
func (s *Spans) AgentUnregistered(id string, at time.Time) {
	if span := s.take(s.agents, id); span != nil {
		span.AddEvent("unregistered", trace.WithTimestamp(at))
		span.End(trace.WithTimestamp(at))
	}
}

// AgentChanged records a change as a span of zero length, in the identity's span if
// there is one.
func (s *Spans) AgentChanged(id, name string, at time.Time, attributes ...attribute.KeyValue) {
	ctx := context.Background()
	if life := s.find(s.agents, id); life != nil {
		ctx = trace.ContextWithSpan(ctx, life)
	}
	attributes = append([]attribute.KeyValue{attribute.String("ag2.agent.id", id)}, attributes...)
	s.startIn(ctx, name+" "+id, "agent_event", at, attributes...).End(trace.WithTimestamp(at))
}

// InboxPressure adds an event to the span of an identity.
func (s *Spans) InboxPressure(agent string, pending, limit int64) {
	if span := s.find(s.agents, agent); span != nil {
		span.AddEvent("inbox_pressure", trace.WithAttributes(
			attribute.Int64("ag2.inbox.pending", pending), attribute.Int64("ag2.inbox.cap", limit)))
	}
}

// Task is a task that has ended.
type Task struct {
	ID, Owner, Channel, Capability string
	Outcome, Reason                string
	StartedAt, EndedAt             time.Time
}

// TaskEnded records a whole task as one span.
func (s *Spans) TaskEnded(t Task) {
	begun, name := t.StartedAt, t.Capability
	if begun.IsZero() {
		begun = t.EndedAt
	}
	name = cmp.Or(name, "task")
	attributes := []attribute.KeyValue{
		attribute.String("ag2.network.task_id", t.ID), attribute.String("ag2.network.outcome", t.Outcome),
	}
	for key, value := range map[string]string{
		"ag2.network.capability": t.Capability, "ag2.network.channel_id": t.Channel, "ag2.network.owner_id": t.Owner,
	} {
		if value != "" {
			attributes = append(attributes, attribute.String(key, value))
		}
	}
	span := s.start("network.task "+name, "task", begun, attributes...)
	if t.Outcome == string(task.Completed) {
		span.SetStatus(codes.Ok, "")
	} else {
		span.SetStatus(codes.Error, t.Reason)
	}
	span.End(trace.WithTimestamp(t.EndedAt))
}
