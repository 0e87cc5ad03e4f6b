// Package tracing records what happens in a hub as OpenTelemetry spans: of
// channels, identities, tasks and envelopes. It exports nothing itself; the
// provider does.
package tracing

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// The names by which AG2's tools identify the spans.
const (
	scope  = "opentelemetry.instrumentation.ag2"
	schema = "https://opentelemetry.io/schemas/1.11.0"

	spanType = attribute.Key("ag2.span.type")
	linkKind = attribute.Key("ag2.link.kind")
)

// Spans records spans. The span of a channel or an identity stays open as long as
// the channel or identity does, in this process. A nil *Spans records nothing.
type Spans struct {
	tracer trace.Tracer

	mu       sync.Mutex
	limit    int // of each map below; beyond it no span is recorded
	channels map[string]trace.Span
	agents   map[string]trace.Span
}

// New returns a recorder that keeps at most limit spans of channels and as many of
// identities open. Without a provider it returns nil.
func New(provider trace.TracerProvider, limit int) *Spans {
	if provider == nil {
		return nil
	}
	return &Spans{
		tracer: provider.Tracer(scope, trace.WithSchemaURL(schema)),
		limit:  limit, channels: map[string]trace.Span{}, agents: map[string]trace.Span{},
	}
}

// Close ends every open span, so that it is exported.
func (s *Spans) Close(now time.Time) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, open := range []map[string]trace.Span{s.channels, s.agents} {
		for id, span := range open {
			span.End(trace.WithTimestamp(now))
			delete(open, id)
		}
	}
}

// open stores a span that stays open.
func (s *Spans) open(in map[string]trace.Span, id string, start func() trace.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := in[id]; !known && len(in) < s.limit {
		in[id] = start()
	}
}

func (s *Spans) find(in map[string]trace.Span, id string) trace.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return in[id]
}

func (s *Spans) take(in map[string]trace.Span, id string) trace.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	span := in[id]
	delete(in, id)
	return span
}

// start starts a root span.
func (s *Spans) start(name, kind string, at time.Time, attributes ...attribute.KeyValue) trace.Span {
	return s.startIn(context.Background(), name, kind, at, attributes...)
}

func (s *Spans) startIn(ctx context.Context, name, kind string, at time.Time, attributes ...attribute.KeyValue) trace.Span {
	_, span := s.tracer.Start(ctx, name, trace.WithTimestamp(at),
		trace.WithAttributes(append(attributes, spanType.String(kind))...))
	return span
}
