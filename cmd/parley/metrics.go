package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-hub/parley/hub"
)

// registryOf makes the registry of /metrics; the server adds its own metrics and those
// of its dialects.
func registryOf(collectors ...prometheus.Collector) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors...) // their names differ
	return registry
}

// hubMetrics are the metrics of the hub.
type hubMetrics struct{ hub *hub.Hub }

var refusedDesc = prometheus.NewDesc("parley_posts_refused_total", "Posts that were refused, by code of the catalogue.", []string{"code"}, nil)

var hubCounters = []struct {
	about *prometheus.Desc
	kind  prometheus.ValueType
	of    func(hub.Stats) int64
}{
	{hubDesc("channels_loaded", "Channels folded in memory now."), prometheus.GaugeValue, func(s hub.Stats) int64 { return int64(s.Loaded) }},
	{hubDesc("posts_in_flight", "Posts ordered but not yet delivered, now."), prometheus.GaugeValue, func(s hub.Stats) int64 { return int64(s.Waiting) }},
	{hubDesc("posts_admitted_total", "Envelopes added to histories."), prometheus.CounterValue, func(s hub.Stats) int64 { return s.Admitted }},
	{hubDesc("deliveries_total", "Envelopes handed to connected readers."), prometheus.CounterValue, func(s hub.Stats) int64 { return s.Delivered }},
	{hubDesc("channels_folded_total", "Channels folded from the journal."), prometheus.CounterValue, func(s hub.Stats) int64 { return s.ChannelsLoaded }},
	{hubDesc("folded_bytes_total", "Bytes read to fold channels."), prometheus.CounterValue, func(s hub.Stats) int64 { return s.BytesFolded }},
	{hubDesc("live_lost_total", "Live deliveries that a reader could not take."), prometheus.CounterValue, func(s hub.Stats) int64 { return s.LiveLost }},
}

var (
	channelsOpen = hubDesc("channels_open", "Channels that have not ended, of adapters that are loaded.")
	inboxPending = hubDesc("inbox_pending", "Envelopes that agents were told and have not answered, of all together.")
	inboxMax     = hubDesc("inbox_pending_max", "The same of the agent that has most.")
	turnsOverdue = hubDesc("turns_overdue", "Turns that are overdue. Known once a summary was asked for.")
	requestsOpen = hubDesc("requests_open", "Requests that are open. Known once a summary was asked for.")
)

func hubDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("parley_"+name, help, nil, nil)
}

// Describe implements prometheus.Collector.
func (m hubMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, about := range []*prometheus.Desc{refusedDesc, channelsOpen, inboxPending, inboxMax, turnsOverdue, requestsOpen} {
		to <- about
	}
	for _, c := range hubCounters {
		to <- c.about
	}
}

// Collect implements prometheus.Collector.
func (m hubMetrics) Collect(to chan<- prometheus.Metric) {
	s := m.hub.Stats()
	for code, n := range s.Refused {
		to <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(n), string(code))
	}
	for _, c := range hubCounters {
		to <- prometheus.MustNewConstMetric(c.about, c.kind, float64(c.of(s)))
	}
	gauge := func(about *prometheus.Desc, n int64) {
		to <- prometheus.MustNewConstMetric(about, prometheus.GaugeValue, float64(n))
	}
	if health, err := m.hub.Health(context.Background()); err == nil {
		gauge(channelsOpen, health.ActiveChannels)
		gauge(inboxPending, health.PendingInboxTotal)
		most := int64(0)
		if health.MaxPendingInboxDepth != nil {
			most = *health.MaxPendingInboxDepth
		}
		gauge(inboxMax, most)
	}
	if overdue, requests, known := m.hub.Waiting(); known {
		gauge(turnsOverdue, int64(overdue))
		gauge(requestsOpen, int64(requests))
	}
}
