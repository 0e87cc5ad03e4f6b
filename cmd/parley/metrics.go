package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-hub/parley/hub"
)

// registryOf makes the registry behind /metrics; the server adds what it and
// its dialects count.
func registryOf(collectors ...prometheus.Collector) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors...) // their names differ
	return registry
}

// hubMetrics tells what the hub counts.
type hubMetrics struct{ hub *hub.Hub }

var refusedDesc = prometheus.NewDesc("parley_posts_refused_total", "Posts that were refused, by code of the catalogue.", []string{"code"}, nil)

var hubCounters = []struct {
	about *prometheus.Desc
	kind  prometheus.ValueType
	of    func(hub.Stats) int64
}{
	{hubDesc("channels_loaded", "Channels folded in memory now."), prometheus.GaugeValue, func(s hub.Stats) int64 { return int64(s.Loaded) }},
	{hubDesc("posts_in_flight", "Posts ordered but not yet delivered, now."), prometheus.GaugeValue, func(s hub.Stats) int64 { return int64(s.Waiting) }},
	{hubDesc("channels_folded_total", "Channels folded from the journal."), prometheus.CounterValue, func(s hub.Stats) int64 { return s.ChannelsLoaded }},
	{hubDesc("folded_bytes_total", "Bytes read to fold channels."), prometheus.CounterValue, func(s hub.Stats) int64 { return s.BytesFolded }},
	{hubDesc("live_lost_total", "Live deliveries that a reader could not take."), prometheus.CounterValue, func(s hub.Stats) int64 { return s.LiveLost }},
}

func hubDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("parley_"+name, help, nil, nil)
}

// Describe names the figures.
func (m hubMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- refusedDesc
	for _, c := range hubCounters {
		to <- c.about
	}
}

// Collect tells them.
func (m hubMetrics) Collect(to chan<- prometheus.Metric) {
	s := m.hub.Stats()
	for code, n := range s.Refused {
		to <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(n), string(code))
	}
	for _, c := range hubCounters {
		to <- prometheus.MustNewConstMetric(c.about, c.kind, float64(c.of(s)))
	}
}
