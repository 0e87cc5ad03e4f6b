// Package spanlog writes ended spans as lines of JSON. It exports to a writer
// that the caller owns, and never reads, rotates or closes it.
package spanlog

import (
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/parley-hub/parley/envelope"
)

// Log is an exporter for a tracer provider: sdk.WithSyncer(log), or
// WithBatcher. Safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	to      io.Writer
	written atomic.Int64
}

var _ sdk.SpanExporter = (*Log)(nil)

// New returns a log that writes to a writer, with one Write for each span.
func New(to io.Writer) *Log { return &Log{to: to} }

// Written returns how many bytes were written so far.
func (l *Log) Written() int64 { return l.written.Load() }

// line is the JSON form of a span.
type line struct {
	TraceID    string         `json:"trace_id"`
	SpanID     string         `json:"span_id"`
	Parent     *string        `json:"parent_span_id"`
	Name       string         `json:"name"`
	Kind       string         `json:"kind"`
	Start      string         `json:"start"`
	End        string         `json:"end"`
	Status     string         `json:"status"`
	Message    string         `json:"status_message"`
	Attributes map[string]any `json:"attributes"`
	Events     []event        `json:"events"`
	Links      []link         `json:"links"`
}

type event struct {
	Name       string         `json:"name"`
	At         string         `json:"at"`
	Attributes map[string]any `json:"attributes"`
}

type link struct {
	TraceID    string         `json:"trace_id"`
	SpanID     string         `json:"span_id"`
	Attributes map[string]any `json:"attributes"`
}

// ExportSpans writes spans that have ended.
func (l *Log) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, span := range spans {
		text, err := json.Marshal(lineOf(span), json.Deterministic(true))
		if err != nil {
			return err
		}
		n, err := l.to.Write(append(text, '\n'))
		l.written.Add(int64(n))
		if err != nil {
			return err
		}
	}
	return nil
}

// Shutdown does nothing: every span is written when it is exported.
func (l *Log) Shutdown(context.Context) error { return nil }

func lineOf(span sdk.ReadOnlySpan) line {
	at, status := span.SpanContext(), span.Status()
	out := line{
		TraceID: at.TraceID().String(), SpanID: at.SpanID().String(),
		Name: span.Name(), Kind: strings.ToUpper(span.SpanKind().String()),
		Start: instant(span.StartTime()), End: instant(span.EndTime()),
		Status: strings.ToUpper(status.Code.String()), Message: status.Description,
		Attributes: values(span.Attributes()), Events: []event{}, Links: []link{},
	}
	if parent := span.Parent(); parent.SpanID().IsValid() {
		id := parent.SpanID().String()
		out.Parent = &id
	}
	for _, e := range span.Events() {
		out.Events = append(out.Events, event{Name: e.Name, At: instant(e.Time), Attributes: values(e.Attributes)})
	}
	for _, other := range span.Links() {
		out.Links = append(out.Links, link{
			TraceID: other.SpanContext.TraceID().String(), SpanID: other.SpanContext.SpanID().String(),
			Attributes: values(other.Attributes),
		})
	}
	return out
}

func instant(t time.Time) string { return envelope.FormatTime(t) }

func values(list []attribute.KeyValue) map[string]any {
	out := make(map[string]any, len(list))
	for _, kv := range list {
		out[string(kv.Key)] = kv.Value.AsInterface()
	}
	return out
}
