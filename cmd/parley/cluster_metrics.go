package main

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-hub/parley/journal/cluster"
)

// clusterMetrics are the metrics of a node.
type clusterMetrics struct {
	engine    *cluster.Engine
	takeovers atomic.Int64
}

var clusterFigures = []struct {
	about *prometheus.Desc
	kind  prometheus.ValueType
	of    func(*clusterMetrics) float64
}{
	{hubDesc("cluster_shards", "Shards of the cluster."), prometheus.GaugeValue, func(m *clusterMetrics) float64 { return float64(m.engine.Shards()) }},
	{hubDesc("cluster_shards_led", "Shards that this node leads; it serves when it leads all."), prometheus.GaugeValue, func(m *clusterMetrics) float64 {
		led := 0
		for shard := range m.engine.Shards() {
			if mine, _, _ := m.engine.Lead(shard); mine {
				led++
			}
		}
		return float64(led)
	}},
	{hubDesc("cluster_nodes", "Nodes that are heard of, this one among them."), prometheus.GaugeValue, func(m *clusterMetrics) float64 { return float64(len(m.engine.Nodes())) }},
	{hubDesc("cluster_nodes_ready", "Nodes that could serve."), prometheus.GaugeValue, func(m *clusterMetrics) float64 {
		ready := 0
		for _, member := range m.engine.Nodes() {
			if member.Ready {
				ready++
			}
		}
		return float64(ready)
	}},
	{hubDesc("cluster_following", "1 while this node's copies follow the streams."), prometheus.GaugeValue, func(m *clusterMetrics) float64 {
		if m.engine.Following() == nil {
			return 1
		}
		return 0
	}},
	{hubDesc("cluster_takeovers_total", "How often this node began to serve."), prometheus.CounterValue, func(m *clusterMetrics) float64 { return float64(m.takeovers.Load()) }},
	{hubDesc("cluster_void_messages_total", "Messages in the streams that no node wrote."), prometheus.CounterValue, func(m *clusterMetrics) float64 { return float64(m.engine.Voids()) }},
}

// Describe implements prometheus.Collector.
func (m *clusterMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, f := range clusterFigures {
		to <- f.about
	}
}

// Collect implements prometheus.Collector.
func (m *clusterMetrics) Collect(to chan<- prometheus.Metric) {
	for _, f := range clusterFigures {
		to <- prometheus.MustNewConstMetric(f.about, f.kind, f.of(m))
	}
}
