package ag2

import "github.com/prometheus/client_golang/prometheus"

// figures are the metrics of a server. All but the connections only increase.
var figures = []struct {
	about *prometheus.Desc
	kind  prometheus.ValueType
	of    func(Stats) int64
}{
	{desc("connections", "AG2 connections open now."), prometheus.GaugeValue, func(s Stats) int64 { return s.Connections }},
	{desc("opened_total", "AG2 connections that were opened."), prometheus.CounterValue, func(s Stats) int64 { return s.Opened }},
	{desc("refused_total", "Upgrades that the AG2 dialect refused."), prometheus.CounterValue, func(s Stats) int64 { return s.Refused }},
	{desc("frames_total", "Messages received from AG2 clients."), prometheus.CounterValue, func(s Stats) int64 { return s.Messages }},
	{desc("malformed_total", "Messages dropped because they could not be read."), prometheus.CounterValue, func(s Stats) int64 { return s.Malformed }},
	{desc("deliveries_total", "Envelopes queued for AG2 readers."), prometheus.CounterValue, func(s Stats) int64 { return s.Deliveries }},
	{desc("oversized_total", "Envelopes that no AG2 client could take."), prometheus.CounterValue, func(s Stats) int64 { return s.Oversized }},
	{desc("writes_total", "System calls that wrote to AG2 clients."), prometheus.CounterValue, func(s Stats) int64 { return s.Writes }},
	{desc("written_bytes_total", "Bytes written to AG2 clients."), prometheus.CounterValue, func(s Stats) int64 { return s.BytesOut }},
	{desc("slow_readers_total", "AG2 clients cut off because they read too slowly."), prometheus.CounterValue, func(s Stats) int64 { return s.SlowReaders }},
	{desc("silent_total", "AG2 clients cut off because they answered no ping."), prometheus.CounterValue, func(s Stats) int64 { return s.Silent }},
	{desc("expelled_total", "AG2 connections ended because a key was made or revoked."), prometheus.CounterValue, func(s Stats) int64 { return s.Expelled }},
	{desc("long_logs_total", "Full reads of a log near or over what an AG2 client can take."), prometheus.CounterValue, func(s Stats) int64 { return s.LongLogs }},
}

func desc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("parley_ag2_"+name, help, nil, nil)
}

// Describe sends the descriptions of the metrics.
func (s *Server) Describe(to chan<- *prometheus.Desc) {
	for _, f := range figures {
		to <- f.about
	}
}

// Collect sends the current values of the metrics.
func (s *Server) Collect(to chan<- prometheus.Metric) {
	stats := s.Stats()
	for _, f := range figures {
		to <- prometheus.MustNewConstMetric(f.about, f.kind, float64(f.of(stats)))
	}
}
