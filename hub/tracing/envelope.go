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

// Caller describes how a post arrived: in which span, and when.
type Caller struct {
	Span    trace.SpanContext
	Arrived time.Time
}

type arrivedKey struct{}

// Arrived records when a post arrived at the hub. An earlier record stays.
func (s *Spans) Arrived(ctx context.Context, now func() time.Time) context.Context {
	if s == nil || ctx.Value(arrivedKey{}) != nil {
		return ctx
	}
	return context.WithValue(ctx, arrivedKey{}, now())
}

// Caller returns how a post arrived, as far as it is known.
func (s *Spans) Caller(ctx context.Context) Caller {
	if s == nil {
		return Caller{}
	}
	at, _ := ctx.Value(arrivedKey{}).(time.Time)
	return Caller{Span: trace.SpanContextFromContext(ctx), Arrived: at}
}

// EnvelopeSpan covers one posted envelope, from before it is stored until it has
// been delivered, with a child for each of its phases. A nil *EnvelopeSpan records
// nothing.
type EnvelopeSpan struct {
	spans *Spans
	span  trace.Span
	mark  time.Time // where the next phase begins
	turn  *Turn     // the turn that the envelope takes
}

// Turn is a turn that an agent has taken.
type Turn struct {
	Channel, Agent string
	Trigger        string // the envelope that it answers; empty: none
	Since          time.Time
}

// The phases of an envelope.
const (
	Admission = "admission" // from its arrival until it is accepted
	Fold      = "fold"      // of the channel's state
	Sync      = "sync"      // from its order in the journal until it is durable
	delivery  = "delivery"  // to readers and listeners
)

// Envelope starts the span of a posted envelope that is not part of the protocol.
// It is always a root, because the log outlives the caller. The envelope carries
// the span's context before it is stored.
func (s *Spans) Envelope(e *envelope.Envelope, caller Caller, now time.Time) *EnvelopeSpan {
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
	if caller.Span.IsValid() {
		links = append(links, trace.Link{SpanContext: caller.Span, Attributes: []attribute.KeyValue{linkKind.String("triggered_by")}})
	}
	began := now
	if !caller.Arrived.IsZero() {
		began = caller.Arrived
	}
	_, span := s.tracer.Start(context.Background(), "network.envelope "+e.Type,
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithTimestamp(began),
		trace.WithAttributes(attributes...), trace.WithLinks(links...))
	if at := span.SpanContext(); at.IsValid() {
		e.Trace = fmt.Sprintf("00-%s-%s-%s", at.TraceID(), at.SpanID(), at.TraceFlags())
	}
	return &EnvelopeSpan{spans: s, span: span, mark: began}
}

// Records reports whether phases and turns are being recorded.
func (s *EnvelopeSpan) Records() bool { return s != nil && s.span.IsRecording() }

// Phase records the time since the last phase, or since the beginning, under a
// name.
func (s *EnvelopeSpan) Phase(name string, clock func() time.Time) {
	if s.Records() {
		s.phase(name, clock())
	}
}

func (s *EnvelopeSpan) phase(name string, now time.Time) {
	s.spans.startIn(trace.ContextWithSpan(context.Background(), s.span), "hub."+name, "phase", s.mark).
		End(trace.WithTimestamp(now))
	s.mark = now
}

// Took sets the turn that the envelope takes. It is recorded once the envelope is
// delivered.
func (s *EnvelopeSpan) Took(t Turn) { s.turn = &t }

// End ends the span of an envelope that was delivered, with the number of
// recipients that it did not reach.
func (s *EnvelopeSpan) End(now time.Time, failures int) {
	if s == nil {
		return
	}
	if s.Records() {
		s.phase(delivery, now)
	}
	if failures > 0 {
		s.span.SetAttributes(attribute.Int("ag2.network.dispatch_failures", failures))
		s.span.SetStatus(codes.Error, fmt.Sprintf("%d dispatch failure(s)", failures))
	}
	s.span.End(trace.WithTimestamp(now))
	if s.turn != nil {
		s.spans.turnTaken(s.turn, s.span.SpanContext(), now)
	}
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

// turnTaken records a whole turn as one span, which links the envelope that took it.
func (s *Spans) turnTaken(t *Turn, by trace.SpanContext, now time.Time) {
	links := []trace.Link{{SpanContext: by, Attributes: []attribute.KeyValue{linkKind.String("taken_by")}}}
	if in := s.find(s.channels, t.Channel); in != nil {
		links = append(links, trace.Link{SpanContext: in.SpanContext(), Attributes: []attribute.KeyValue{linkKind.String("in_channel")}})
	}
	attributes := []attribute.KeyValue{
		spanType.String("turn"), attribute.String("ag2.network.channel_id", t.Channel), attribute.String("ag2.agent.id", t.Agent),
	}
	if t.Trigger != "" {
		attributes = append(attributes, attribute.String("ag2.network.causation_id", t.Trigger))
	}
	_, span := s.tracer.Start(context.Background(), "network.turn", trace.WithTimestamp(t.Since),
		trace.WithAttributes(attributes...), trace.WithLinks(links...))
	span.End(trace.WithTimestamp(now))
}
