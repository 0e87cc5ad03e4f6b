package agh

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-hub/parley/dialect/agh/wire"
)

// mostLabels is how many channels have a label of their own; further ones are "other".
const mostLabels = 200

// Values of a label for a channel that is not known, and for channels beyond
// mostLabels.
const (
	labelUnknown = "unknown"
	labelOther   = "other"
)

// metrics are the network's metrics. Their labels are names of channels and words of
// the protocol, never ids.
type metrics struct {
	messages, conversation, threads, directs, workOpened, workMoved, resolves *prometheus.CounterVec

	mu       sync.Mutex
	channels map[string]bool
}

func newMetrics() *metrics {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &metrics{
		messages:     vec("network_messages_total", "AGH envelopes by what became of them.", "channel", "surface", "kind", "direction", "result"),
		conversation: vec("network_conversation_messages_total", "AGH messages that were stored.", "channel", "surface"),
		threads:      vec("network_threads_open_total", "AGH threads that were opened.", "channel"),
		directs:      vec("network_direct_rooms_open_total", "AGH direct rooms that were opened.", "channel"),
		workOpened:   vec("network_work_open_total", "Pieces of AGH work that were opened.", "channel", "surface"),
		workMoved:    vec("network_work_transitions_total", "AGH work that came into a state.", "channel", "surface", "state"),
		resolves:     vec("network_direct_resolve_total", "AGH direct rooms that were asked for.", "channel", "result"),
		channels:     map[string]bool{},
	}
}

var (
	openWorkDesc   = prometheus.NewDesc("network_open_work_items", "Pieces of AGH work that are open.", []string{"channel", "surface"}, nil)
	droppedDesc    = prometheus.NewDesc("network_dropped_total", "AGH messages over the budget of a subscription or a sender, or of peers over agh.limits.remotes.", nil, nil)
	slowDesc       = prometheus.NewDesc("parley_agh_slow_readers_total", "Live streams of AGH channels cut off because they read too slowly.", nil, nil)
	queueDepthDesc = prometheus.NewDesc("network_delivery_queue_depth", "AGH messages that wait for hosted peers.", []string{"channel", "surface"}, nil)
)

func (m *metrics) vectors() []*prometheus.CounterVec {
	return []*prometheus.CounterVec{m.messages, m.conversation, m.threads, m.directs, m.workOpened, m.workMoved, m.resolves}
}

// Describe implements prometheus.Collector.
func (s *Server) Describe(to chan<- *prometheus.Desc) {
	for _, v := range s.metrics.vectors() {
		v.Describe(to)
	}
	to <- openWorkDesc
	to <- queueDepthDesc
	to <- droppedDesc
	to <- slowDesc
}

// gaugesWithin bounds how long it takes to compute the gauges.
const gaugesWithin = 5 * time.Second

// Collect implements prometheus.Collector.
func (s *Server) Collect(to chan<- prometheus.Metric) {
	for _, v := range s.metrics.vectors() {
		v.Collect(to)
	}
	to <- prometheus.MustNewConstMetric(droppedDesc, prometheus.CounterValue, float64(s.counts.dropped.Load()))
	to <- prometheus.MustNewConstMetric(slowDesc, prometheus.CounterValue, float64(s.counts.slow.Load()))
	ctx, cancel := context.WithTimeout(s.ctx, gaugesWithin)
	defer cancel()
	type label struct{ channel, surface string }
	work, waiting := map[label]int{}, map[label]int{}
	for _, sp := range s.list() {
		for _, r := range sp.list() {
			channel := s.metrics.label(r.channel)
			if t, err := r.counts(ctx); err == nil {
				for surface, n := range t.openWork {
					work[label{channel, string(surface)}] += n
				}
			}
			for _, p := range r.everyone() {
				list, _ := p.queue.snapshot()
				for _, m := range list {
					waiting[label{channel, m.meta.surface}]++
				}
			}
		}
	}
	for l, n := range work {
		to <- prometheus.MustNewConstMetric(openWorkDesc, prometheus.GaugeValue, float64(n), l.channel, l.surface)
	}
	for l, n := range waiting {
		to <- prometheus.MustNewConstMetric(queueDepthDesc, prometheus.GaugeValue, float64(n), l.channel, l.surface)
	}
}

// label returns the label of a channel of this runtime.
func (m *metrics) label(channel string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.channels[channel] {
		if len(m.channels) >= mostLabels {
			return labelOther
		}
		m.channels[channel] = true
	}
	return channel
}

// channelLabel returns the label of the channel that an envelope names, which may not
// exist.
func (s *Server) channelLabel(workspace, channel string) string {
	sp, err := s.find(workspace)
	if err == nil {
		_, err = sp.find(channel)
	}
	if err != nil {
		return labelUnknown
	}
	return s.metrics.label(channel)
}

// results maps directions of the audit to values of the label result.
var results = map[direction]string{sent: "published", received: "accepted", rejected: "rejected", delivered: "delivered"}

// measure counts what happened to an envelope.
func (s *Server) measure(a *auditOf, d direction, reason string) {
	kind, surface, way := a.kind, a.surface, "received"
	if !wire.Kind(kind).Known() {
		kind = labelUnknown
	}
	if surface != string(wire.Thread) && surface != string(wire.Direct) {
		surface = ""
	}
	switch {
	case d == sent || reason == reasonPublish:
		way = "sent"
	case d == rejected && a.from == "":
		way = labelUnknown
	}
	s.metrics.messages.WithLabelValues(s.channelLabel(a.workspace, a.channel), surface, kind, way, results[d]).Inc()
}

// measureStored counts a stored message and what it opened and moved.
func (r *netChannel) measureStored(e *wire.Envelope, way direction, c change) {
	m := r.space.s.metrics
	channel, surface := m.label(r.channel), string(e.Surface)
	m.messages.WithLabelValues(channel, surface, string(e.Kind), string(way), "persisted").Inc()
	m.conversation.WithLabelValues(channel, surface).Inc()
	if c.opened && e.Surface == wire.Thread {
		m.threads.WithLabelValues(channel).Inc()
	}
	if c.opened && e.Surface == wire.Direct {
		m.directs.WithLabelValues(channel).Inc()
	}
	if c.opensWork() {
		m.workOpened.WithLabelValues(channel, surface).Inc()
	}
	if c.movesWork() {
		m.workMoved.WithLabelValues(channel, surface, c.now.name()).Inc()
		r.space.s.counts.transitions.Add(1)
	}
}
