package ag2_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/hub"
)

func TestTracingStatement(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-hub#122: a text post yields a PRODUCER envelope span", func(t *spec.T) {
		spans := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		defer func() { _ = provider.Shutdown(context.Background()) }()
		r := newRig(t, options{hub: hub.Options{Tracing: provider}})
		p, q := r.dial(), r.dial()
		alice, bob := p.register("alice"), q.register("bob")
		ch := p.open("conversation", alice, map[string]*peer{bob: q})
		id := p.say(ch, alice, "hi")
		n := q.notified()
		var log []object
		p.call("read_wal", object{"channel_id": ch, "since": -1}, &log)
		t.Equal(log[0]["envelope_id"], any(id))
		stored, _ := log[0]["trace_id"].(string)
		t.True(strings.HasPrefix(stored, "00-"), "trace_id %q begins with 00-", stored)
		t.Equal(n.Envelope["trace_id"], any(stored))
		var span sdktrace.ReadOnlySpan
		until(t, "the span ends", func() bool {
			i := slices.IndexFunc(spans.Ended(), func(s sdktrace.ReadOnlySpan) bool { return s.Name() == "network.envelope ag2.msg.text" })
			if i >= 0 {
				span = spans.Ended()[i]
			}
			return i >= 0
		})
		t.Equal(span.SpanKind(), trace.SpanKindProducer)
		t.Equal(strings.Split(stored, "-")[1], span.SpanContext().TraceID().String())
	})
}
