package tracing

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-hub/parley/envelope"
)

// Caller returns the span in which a post is made, if there is one.
func (s *Spans) Caller(ctx context.Context) trace.SpanContext {
	if s == nil {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(ctx)
}

// EnvelopeSpan covers one posted envelope, from before it is stored until it has
// been delivered. A nil *EnvelopeSpan records nothing.
type EnvelopeSpan struct{ span trace.Span }

// Envelope starts the span of a posted envelope that is not part of the protocol.
// It is always a root, because the log outlives the caller. The envelope carries
// the span's context before it is stored.
func (s *Spans) Envelope(e *envelope.Envelope, caller trace.SpanContext, now time.Time) *EnvelopeSpan {
	if s == nil || envelope.IsProtocol(e.Type) {
		return nil
	}
	attributes := []attribute.KeyValue{
		spanType.String("envelope"),
		attribute.String("ag2.network.channel_id", e.Channel),
		attribute.String("ag2.network.sender_id", e.Sender),
		attribute.String("ag2.network.event_type", e.Type),
		attribute.String("ag2.network.envelope_id", e.ID),
	}
	if e.Causation != "" {
		attributes = append(attributes, attribute.String("ag2.network.causation_id", e.Causation))
	}
	if e.Audience != nil {
		attributes = append(attributes, attribute.StringSlice("ag2.network.audience", e.Audience))
	}
	var links []trace.Link
	if in := s.find(s.channels, e.Channel); in != nil {
		links = append(links, trace.Link{SpanContext: in.SpanContext(), Attributes: []attribute.KeyValue{linkKind.String("in_channel")}})
	}
	if caller.IsValid() {
		links = append(links, trace.Link{SpanContext: caller, Attributes: []attribute.KeyValue{linkKind.String("triggered_by")}})
	}
	_, span := s.tracer.Start(context.Background(), "network.envelope "+e.Type,
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithTimestamp(now),
		trace.WithAttributes(attributes...), trace.WithLinks(links...))
	if at := span.SpanContext(); at.IsValid() {
		e.Trace = fmt.Sprintf("00-%s-%s-%s", at.TraceID(), at.SpanID(), at.TraceFlags())
	}
	return &EnvelopeSpan{span}
}

// End ends the span of an envelope that was delivered, with the number of
// recipients that could not be reached.
func (s *EnvelopeSpan) End(now time.Time, failures int) {
	if s == nil {
		return
	}
	if failures > 0 {
		s.span.SetAttributes(attribute.Int("ag2.network.dispatch_failures", failures))
		s.span.SetStatus(codes.Error, fmt.Sprintf("%d dispatch failure(s)", failures))
	}
	s.span.End(trace.WithTimestamp(now))
}

// Fail ends the span of an envelope that was not stored, or whose delivery
// panicked.
func (s *EnvelopeSpan) Fail(now time.Time, err error) {
	if s == nil || err == nil {
		return
	}
	s.span.RecordError(err, trace.WithTimestamp(now))
	s.span.SetStatus(codes.Error, err.Error())
	s.span.End(trace.WithTimestamp(now))
}
