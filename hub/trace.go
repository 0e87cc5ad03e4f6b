package hub

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-hub/parley/envelope"
)

// The names under which spans are known to those who read them.
const (
	traceScope  = "opentelemetry.instrumentation.ag2"
	traceSchema = "https://opentelemetry.io/schemas/1.11.0"

	spanType = attribute.Key("ag2.span.type")
	linkKind = attribute.Key("ag2.link.kind")
)

// tracing records spans, if the hub was given a provider. Those of channels and
// of identities stay open as long as these do, in this process.
type tracing struct {
	NoopListener
	tracer trace.Tracer // nil: nothing is recorded

	mu       sync.Mutex
	limit    int // of each below; more have no span
	channels map[string]trace.Span
	agents   map[string]trace.Span
}

func (t *tracing) init(provider trace.TracerProvider, limit int) {
	if provider == nil {
		return
	}
	t.tracer = provider.Tracer(traceScope, trace.WithSchemaURL(traceSchema))
	t.limit, t.channels, t.agents = limit, map[string]trace.Span{}, map[string]trace.Span{}
}

// close ends what is still open, so that it is exported.
func (t *tracing) close(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, open := range []map[string]trace.Span{t.channels, t.agents} {
		for id, span := range open {
			span.End(trace.WithTimestamp(now))
			delete(open, id)
		}
	}
}

// keep remembers a span that stays open.
func (t *tracing) keep(in map[string]trace.Span, id string, start func() trace.Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := in[id]; !known && len(in) < t.limit {
		in[id] = start()
	}
}

func (t *tracing) find(in map[string]trace.Span, id string) trace.Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	return in[id]
}

func (t *tracing) take(in map[string]trace.Span, id string) trace.Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	span := in[id]
	delete(in, id)
	return span
}

// caller is the span in which a post is made, if there is one.
func (t *tracing) caller(ctx context.Context) trace.SpanContext {
	if t.tracer == nil {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(ctx)
}

// envelopeSpan tells of one posted envelope, from before it is stored until it
// has been delivered. Nil tells nothing.
type envelopeSpan struct{ span trace.Span }

// traceEnvelope starts the span of a posted, substantive envelope: always a
// root, because the log outlives whoever called. The envelope carries the
// span's context before it is stored.
func (b *batch) traceEnvelope(e *envelope.Envelope, posted bool) *envelopeSpan {
	t := &b.hub.tracing
	if t.tracer == nil || !posted || envelope.IsProtocol(e.Type) {
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
	if in := t.find(t.channels, e.Channel); in != nil {
		links = append(links, trace.Link{SpanContext: in.SpanContext(), Attributes: []attribute.KeyValue{linkKind.String("in_channel")}})
	}
	if b.caller.IsValid() {
		links = append(links, trace.Link{SpanContext: b.caller, Attributes: []attribute.KeyValue{linkKind.String("triggered_by")}})
	}
	_, span := t.tracer.Start(context.Background(), "network.envelope "+e.Type,
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithTimestamp(b.now),
		trace.WithAttributes(attributes...), trace.WithLinks(links...))
	if at := span.SpanContext(); at.IsValid() {
		e.Trace = fmt.Sprintf("00-%s-%s-%s", at.TraceID(), at.SpanID(), at.TraceFlags())
	}
	return &envelopeSpan{span}
}

// end ends a span whose envelope was delivered, apart from some failures.
func (s *envelopeSpan) end(now time.Time, failures int) {
	if s == nil {
		return
	}
	if failures > 0 {
		s.span.SetAttributes(attribute.Int("ag2.network.dispatch_failures", failures))
		s.span.SetStatus(codes.Error, fmt.Sprintf("%d dispatch failure(s)", failures))
	}
	s.span.End(trace.WithTimestamp(now))
}

// fail ends a span whose envelope was not stored, or not delivered because
// something broke.
func (s *envelopeSpan) fail(now time.Time, err error) {
	if s == nil || err == nil {
		return
	}
	s.span.RecordError(err, trace.WithTimestamp(now))
	s.span.SetStatus(codes.Error, err.Error())
	s.span.End(trace.WithTimestamp(now))
}

// failSpans ends the spans of a batch that was not stored.
func (h *Hub) failSpans(items []item, err error) {
	for i := range items {
		items[i].span.fail(h.now(), err)
	}
}
