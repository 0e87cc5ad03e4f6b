package main

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-hub/parley/hub/tracing/otlp"
	"github.com/parley-hub/parley/server/config"
)

// spanExport sends the hub's spans to a collector; nil sends none.
type spanExport struct{ *otlp.Exporter }

func tracingOf(ctx context.Context, cfg config.Tracing, log *slog.Logger) (*spanExport, error) {
	if cfg.OTLP == "" {
		return nil, nil
	}
	e, err := otlp.New(ctx, otlp.Options{
		Endpoint: cfg.OTLP, Headers: cfg.Headers, Percent: cfg.Percent, Queue: cfg.Queue, Timeout: cfg.Timeout,
		Version: thisBuild().Version, Log: log,
	})
	if err != nil {
		return nil, err
	}
	return &spanExport{e}, nil
}

func (s *spanExport) provider() trace.TracerProvider {
	if s == nil {
		return nil
	}
	return s.Provider()
}

// close sends the spans that wait, in half of the time that is left.
func (s *spanExport) close(cfg config.Config) {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(cfg.Tracing.Timeout, cfg.Shutdown.Timeout/2))
	defer cancel()
	s.Close(ctx)
}

// collectors returns the metrics of the export.
func (s *spanExport) collectors() []prometheus.Collector {
	if s == nil {
		return nil
	}
	counter := func(outcome string, of func(otlp.Stats) int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "parley_spans_total", Help: "Ended spans, by what became of them.", ConstLabels: prometheus.Labels{"outcome": outcome},
		}, func() float64 { return float64(of(s.Stats())) })
	}
	return []prometheus.Collector{
		counter("sent", func(c otlp.Stats) int64 { return c.Sent }),
		counter("failed", func(c otlp.Stats) int64 { return c.Failed }),
		counter("dropped", func(c otlp.Stats) int64 { return c.Dropped }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "parley_spans_waiting", Help: "Spans that wait for the collector, now."},
			func() float64 { return float64(s.Stats().Waiting) }),
	}
}
