package server

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are the server's own figures.
type metrics struct {
	connections prometheus.Gauge
	refused     *prometheus.CounterVec
	requests    *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	upgrades    prometheus.Counter
	failures    *prometheus.CounterVec
}

func newMetrics(registry *prometheus.Registry, version string, dialects []Dialect) (*metrics, error) {
	m := &metrics{
		connections: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "parley_connections", Help: "Connections open now, of every dialect.",
		}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_refused_total", Help: "Requests and connections refused at the door, by reason.",
		}, []string{"reason"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_http_requests_total", Help: "Plain HTTP requests answered, by route and status.",
		}, []string{"route", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "parley_http_request_seconds", Help: "Time to answer a plain HTTP request, by route; streams are not counted.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8),
		}, []string{"route"}),
		upgrades: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parley_upgrades_total", Help: "WebSocket upgrades asked for.",
		}),
	}
	m.failures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_auth_failures_total", Help: "Authentications that failed, by where they were tried.",
	}, []string{"door"})
	for _, reason := range []string{"connections", "host", "origin", "site", "token"} {
		m.refused.WithLabelValues(reason) // exists at 0, before the first
	}
	m.failures.WithLabelValues("http")
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "parley_build_info", Help: "Always 1; the label tells the version.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	for _, c := range []prometheus.Collector{
		m.connections, m.refused, m.requests, m.seconds, m.upgrades, m.failures, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	for _, d := range dialects {
		if err := registry.Register(d); err != nil {
			return nil, fmt.Errorf("dialect %s: %w", d.Name(), err)
		}
	}
	return m, nil
}

// observe counts requests. Upgrades are passed on unchanged: the handler
// that takes over the connection needs the writer that net/http made.
func (m *metrics) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isUpgrade(r) {
			m.upgrades.Inc()
			next.ServeHTTP(w, r)
			return
		}
		start := time.Now()
		answer := &recorder{ResponseWriter: w, status: http.StatusOK}
		route := &routeName{}
		next.ServeHTTP(answer, r.WithContext(withRoute(r.Context(), route)))
		m.requests.WithLabelValues(route.String(), strconv.Itoa(answer.status)).Inc()
		if !answer.streams() {
			m.seconds.WithLabelValues(route.String()).Observe(time.Since(start).Seconds())
		}
	})
}

// recorder remembers the status and passes everything else on.
type recorder struct {
	http.ResponseWriter
	status  int
	written bool
}

func (r *recorder) WriteHeader(status int) {
	if !r.written && status >= http.StatusOK {
		r.status, r.written = status, true
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	r.written = true
	return r.ResponseWriter.Write(b)
}

// streams reports whether the answer lasted until its reader left: that
// duration says nothing about the hub.
func (r *recorder) streams() bool {
	return r.Header().Get("Content-Type") == "text/event-stream"
}

// Unwrap serves http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
