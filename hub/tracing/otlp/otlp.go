// Package otlp sends spans to a collector by OTLP over HTTP, through the official
// exporter. Recording a span never waits for the collector: spans wait in a bounded
// queue, and a span that finds the queue full is dropped and counted.
package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-hub/parley/internal/logsample"
)

// Options sets where spans are sent.
type Options struct {
	Endpoint string        // such as http://127.0.0.1:4318; without a path, /v1/traces
	Headers  string        // a file with a header on each line; empty: none
	Percent  int           // of envelopes that are recorded, chosen at random
	Queue    int           // spans that wait
	Timeout  time.Duration // for one export, attempts included
	Version  string        // of the program
	Log      *slog.Logger
}

// Exporter is a tracer provider that sends its spans.
type Exporter struct {
	provider *sdk.TracerProvider
	counts   *counts
	giveUp   context.CancelFunc // cancels exports in progress
}

// maxHeaders is the maximum size of the headers file.
const maxHeaders = 64 << 10

// New returns an exporter. It does not connect: an unreachable collector is tried
// again with every batch.
func New(ctx context.Context, o Options) (*Exporter, error) {
	at, err := url.Parse(o.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("tracing.otlp: %w", err)
	}
	if strings.Trim(at.Path, "/") == "" {
		at.Path = "/v1/traces"
	}
	options := []otlptracehttp.Option{
		otlptracehttp.WithEndpointURL(at.String()),
		otlptracehttp.WithTimeout(o.Timeout),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: time.Second, MaxInterval: 5 * time.Second, MaxElapsedTime: o.Timeout,
		}),
	}
	if o.Headers != "" {
		headers, err := readHeaders(o.Headers)
		if err != nil {
			return nil, fmt.Errorf("tracing.headers: %w", err)
		}
		options = append(options, otlptracehttp.WithHeaders(headers))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("tracing.otlp: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "parley"), attribute.String("service.version", o.Version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	counts := &counts{}
	given, giveUp := context.WithCancel(context.Background())
	batch := min(512, o.Queue)
	// The batcher's own queue never fills: it is larger than what the outer queue
	// lets in.
	batcher := sdk.NewBatchSpanProcessor(&sink{SpanExporter: exporter, counts: counts, log: o.Log, given: given},
		sdk.WithMaxQueueSize(o.Queue+batch), sdk.WithMaxExportBatchSize(batch),
		sdk.WithBatchTimeout(time.Second), sdk.WithExportTimeout(o.Timeout))
	return &Exporter{
		counts: counts, giveUp: giveUp,
		provider: sdk.NewTracerProvider(sdk.WithResource(about),
			sdk.WithSpanProcessor(&queue{SpanProcessor: batcher, counts: counts, limit: int64(o.Queue)}),
			sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(float64(o.Percent)/100)))),
	}, nil
}

// Provider returns the tracer provider for a hub.
func (e *Exporter) Provider() trace.TracerProvider { return e.provider }

// Stats counts what happened to the ended spans so far.
type Stats struct {
	Sent    int64
	Failed  int64 // the collector did not accept them
	Dropped int64 // the queue was full
	Waiting int64 // now
}

// Stats returns the current counts.
func (e *Exporter) Stats() Stats {
	c := e.counts
	return Stats{Sent: c.sent.Load(), Failed: c.failed.Load(), Dropped: c.dropped.Load(), Waiting: c.waiting.Load()}
}

// Close sends the waiting spans until ctx ends. Spans that were not sent by then
// are counted, and are not an error.
func (e *Exporter) Close(ctx context.Context) {
	_ = e.provider.Shutdown(ctx)
	e.giveUp()
}

type counts struct{ waiting, sent, failed, dropped atomic.Int64 }

// queue bounds how many spans wait for the batcher and in it.
type queue struct {
	sdk.SpanProcessor // the batcher
	*counts
	limit int64
}

// OnEnd queues a span that was sampled.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if q.waiting.Add(1) > q.limit {
		q.waiting.Add(-1)
		q.dropped.Add(1)
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// sink counts what happens to the batches. It logs failures and does not return
// them.
type sink struct {
	sdk.SpanExporter
	*counts
	log      *slog.Logger
	warnings logsample.Limiter
	given    context.Context // ends when nothing more is sent
}

// ExportSpans sends a batch.
func (s *sink) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.given, cancel)()
	err := s.SpanExporter.ExportSpans(ctx, spans)
	s.waiting.Add(-int64(len(spans)))
	if err != nil {
		s.failed.Add(int64(len(spans)))
		s.warnings.Warn(s.log, time.Now(), "spans not sent", "spans", len(spans), "error", err)
		return nil
	}
	s.sent.Add(int64(len(spans)))
	return nil
}

// readHeaders reads lines such as `authorization: Bearer …`. Its errors never
// contain the content of a line.
func readHeaders(file string) (map[string]string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxHeaders {
		return nil, fmt.Errorf("%s has %d bytes; at most %d", file, info.Size(), maxHeaders)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	headers := map[string]string{}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || strings.ContainsFunc(name, notToken) || strings.ContainsFunc(value, unicode.IsControl) {
			return nil, fmt.Errorf("%s:%d is not a header; a line looks like authorization: Bearer TOKEN", file, i+1)
		}
		headers[name] = value
	}
	return headers, nil
}

func notToken(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}
