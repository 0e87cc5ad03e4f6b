package spanlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-hub/parley/hub/tracing/spanlog"
)

func TestLines(t *testing.T) {
	t.Parallel()
	out := &bytes.Buffer{}
	log := spanlog.New(out)
	tracer := sdk.NewTracerProvider(sdk.WithSyncer(log)).Tracer("test")
	at := time.Date(2026, 3, 9, 10, 15, 42, 8_113_000, time.UTC)
	ctx, parent := tracer.Start(context.Background(), "parent", trace.WithTimestamp(at))
	_, child := tracer.Start(ctx, "child", trace.WithTimestamp(at), trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(attribute.Int("n", 1), attribute.StringSlice("list", []string{"a"})),
		trace.WithLinks(trace.Link{SpanContext: parent.SpanContext(), Attributes: []attribute.KeyValue{attribute.Bool("b", true)}}))
	child.AddEvent("e", trace.WithTimestamp(at), trace.WithAttributes(attribute.String("k", "v")))
	child.SetStatus(codes.Error, "bad")
	child.End(trace.WithTimestamp(at.Add(time.Second)))
	of, in := parent.SpanContext(), child.SpanContext()
	want := fmt.Sprintf(`{"trace_id":"%s","span_id":"%s","parent_span_id":"%s","name":"child","kind":"PRODUCER",`+
		`"start":"2026-03-09T10:15:42.008113Z","end":"2026-03-09T10:15:43.008113Z","status":"ERROR","status_message":"bad",`+
		`"attributes":{"list":["a"],"n":1},"events":[{"name":"e","at":"2026-03-09T10:15:42.008113Z","attributes":{"k":"v"}}],`+
		`"links":[{"trace_id":"%s","span_id":"%s","attributes":{"b":true}}]}`+"\n",
		in.TraceID(), in.SpanID(), of.SpanID(), of.TraceID(), of.SpanID())
	if got := out.String(); got != want {
		t.Fatalf("got  %swant %s", got, want)
	}
	if got := log.Written(); got != int64(len(want)) {
		t.Fatalf("%d bytes written, %d counted", len(want), got)
	}
	if err := log.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestUnsampledSpansAreNotWritten(t *testing.T) {
	t.Parallel()
	out := &bytes.Buffer{}
	tracer := sdk.NewTracerProvider(sdk.WithSyncer(spanlog.New(out)), sdk.WithSampler(sdk.NeverSample())).Tracer("test")
	_, span := tracer.Start(context.Background(), "x")
	span.End()
	if out.Len() != 0 {
		t.Fatalf("wrote %s", out)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestWriterFails(t *testing.T) {
	t.Parallel()
	log := spanlog.New(full{})
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(sdk.NewSimpleSpanProcessor(log)))
	_, span := provider.Tracer("test").Start(context.Background(), "x")
	span.End() // the provider gets the span, the hub does not
	if log.Written() != 0 {
		t.Fatalf("%d bytes counted", log.Written())
	}
	ro, ok := span.(sdk.ReadOnlySpan)
	if !ok {
		t.Fatalf("%T is not readable", span)
	}
	if err := log.ExportSpans(context.Background(), []sdk.ReadOnlySpan{ro}); err == nil {
		t.Fatal("no error")
	}
}
