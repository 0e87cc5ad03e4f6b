package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/hub"
)

// registryOf makes the registry behind /metrics with what the dialects count.
func registryOf(collectors ...prometheus.Collector) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors...) // their names differ
	return registry
}

// ag2Metrics tells what the AG2 listener counts.
type ag2Metrics struct{ server *ag2.Server }

// ag2Counters are its figures. All but the connections only grow.
var ag2Counters = []struct {
	about *prometheus.Desc
	kind  prometheus.ValueType
	of    func(ag2.Stats) int64
}{
	{ag2Desc("connections", "AG2 connections open now."), prometheus.GaugeValue, func(s ag2.Stats) int64 { return s.Connections }},
	{ag2Desc("opened_total", "AG2 connections that were opened."), prometheus.CounterValue, func(s ag2.Stats) int64 { return s.Opened }},
	{ag2Desc("refused_total", "Upgrades that the AG2 dialect refused."), prometheus.CounterValue, func(s ag2.Stats) int64 { return s.Refused }},
	{ag2Desc("frames_total", "Messages received from AG2 clients."), prometheus.CounterValue, func(s ag2.Stats) int64 { return s.Messages }},
	{ag2Desc("malformed_total", "Messages dropped because they could not be read."), prometheus.CounterValue, func(s ag2.Stats) int64 { return s.Malformed }},
	{ag2Desc("deliveries_total", "Envelopes queued for AG2 readers."), prometheus.CounterValue, func(s ag2.Stats) int64 { return s.Deliveries }},
	{ag2Desc("oversized_total", "Envelopes that no AG2 client could take."), prometheus.CounterValue, func(s ag2.Stats) int64 { return s.Oversized }},
	{ag2Desc("writes_total", "System calls that wrote to AG2 clients."), prometheus.CounterValue, func(s ag2.Stats) int64 { return s.Writes }},
	{ag2Desc("written_bytes_total", "Bytes written to AG2 clients."), prometheus.CounterValue, func(s ag2.Stats) int64 { return s.BytesOut }},
	{ag2Desc("slow_readers_total", "AG2 clients cut off because they read too slowly."), prometheus.CounterValue, func(s ag2.Stats) int64 { return s.SlowReaders }},
	{ag2Desc("silent_total", "AG2 clients cut off because they answered no ping."), prometheus.CounterValue, func(s ag2.Stats) int64 { return s.Silent }},
	{ag2Desc("expelled_total", "AG2 connections ended because a key was made or revoked."), prometheus.CounterValue, func(s ag2.Stats) int64 { return s.Expelled }},
	{ag2Desc("long_logs_total", "Full reads of a log near or over what an AG2 client can take."), prometheus.CounterValue, func(s ag2.Stats) int64 { return s.LongLogs }},
}

func ag2Desc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("parley_ag2_"+name, help, nil, nil)
}

// Describe names the figures.
func (m ag2Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range ag2Counters {
		to <- c.about
	}
}

// Collect tells them.
func (m ag2Metrics) Collect(to chan<- prometheus.Metric) {
	s := m.server.Stats()
	for _, c := range ag2Counters {
		to <- prometheus.MustNewConstMetric(c.about, c.kind, float64(c.of(s)))
	}
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
