package main

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/server/stats"
)

// measured are the series of GET /v1/stats, each with the metric that it is read from.
var measured = []struct {
	stats.Series
	from string
}{
	{stats.Series{Name: "admitted", Counter: true}, "parley_posts_admitted_total"},
	{stats.Series{Name: "delivered", Counter: true}, "parley_deliveries_total"},
	{stats.Series{Name: "refused", Counter: true}, "parley_posts_refused_total"},
	{stats.Series{Name: "syncs", Counter: true}, "parley_journal_syncs_total"},
	{stats.Series{Name: stats.SyncP50}, ""},
	{stats.Series{Name: stats.SyncP99}, ""},
	{stats.Series{Name: stats.SyncMax}, ""},
	{stats.Series{Name: "batch_records", Counter: true}, "parley_journal_records_total"},
	{stats.Series{Name: "unsynced_bytes"}, "parley_journal_unsynced_bytes"},
	{stats.Series{Name: "connections"}, "parley_connections"},
	{stats.Series{Name: "followers"}, "parley_followers"},
	{stats.Series{Name: "slow_cut", Counter: true}, slowReaders},
	{stats.Series{Name: "live_lost", Counter: true}, "parley_live_lost_total"},
	{stats.Series{Name: "inbox_total"}, "parley_inbox_pending"},
	{stats.Series{Name: "inbox_max"}, "parley_inbox_pending_max"},
	{stats.Series{Name: "channels_open"}, "parley_channels_open"},
	{stats.Series{Name: "channels_loaded"}, "parley_channels_loaded"},
	{stats.Series{Name: "overdue"}, "parley_turns_overdue"},
	{stats.Series{Name: "requests_open"}, "parley_requests_open"},
	{stats.Series{Name: "heap"}, "go_memstats_heap_alloc_bytes"},
	{stats.Series{Name: "cpu", Counter: true}, "process_cpu_seconds_total"},
	{stats.Series{Name: "goroutines"}, "go_goroutines"},
	{stats.Series{Name: "disk_free"}, "parley_disk_free_bytes"},
	{stats.Series{Name: "data_bytes"}, "parley_data_bytes"},
}

// slowReaders is the series of readers that were cut off, over all dialects.
const slowReaders = "slow readers"

// recorderOf records metrics of a registry.
func recorderOf(registry *prometheus.Registry, engine journal.Engine) *stats.Recorder {
	series := make([]stats.Series, len(measured))
	for i, m := range measured {
		series[i] = m.Series
	}
	return stats.New(series, func() stats.Reading { return readingOf(registry, engine) })
}

func readingOf(registry *prometheus.Registry, engine journal.Engine) stats.Reading {
	r := stats.Reading{Values: make([]float64, len(measured))}
	families, _ := registry.Gather() // a metric that fails is unknown
	sums := make(map[string]float64, len(families))
	for _, f := range families {
		for _, m := range f.GetMetric() { // over its labels
			sums[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	if len(families) > 0 {
		sums["parley_posts_refused_total"] += 0 // by code: there is no figure before the first
	}
	sums[slowReaders] = sums["parley_slow_readers_total"] + sums["parley_ag2_slow_readers_total"] +
		sums["parley_hpd_readers_cut_off_total"] + sums["parley_agh_slow_readers_total"]
	for i, m := range measured {
		value, ok := sums[m.from]
		if !ok {
			value = math.NaN()
		}
		r.Values[i] = value
	}
	times := engine.Stats().SyncTimes
	r.Mark = times
	r.Since = func(before any) (p50, p99, most float64) {
		earlier, ok := before.(journal.Histogram)
		if !ok {
			return math.NaN(), math.NaN(), math.NaN()
		}
		since := times.Since(earlier)
		if since.Total() == 0 {
			return math.NaN(), math.NaN(), math.NaN()
		}
		return since.Quantile(0.5).Seconds(), since.Quantile(0.99).Seconds(), since.Quantile(1).Seconds()
	}
	return r
}

// refusedAtDoor returns a function that reads from a registry what the server refused
// before the hub received it, by reason.
func refusedAtDoor(registry *prometheus.Registry) func() map[string]int64 {
	return func() map[string]int64 {
		counted := map[string]int64{}
		families, _ := registry.Gather() // a metric that fails is unknown
		for _, f := range families {
			if f.GetName() != "parley_refused_total" {
				continue
			}
			for _, m := range f.GetMetric() {
				if n := int64(m.GetCounter().GetValue()); n > 0 {
					counted[m.GetLabel()[0].GetValue()] = n
				}
			}
		}
		return counted
	}
}

// journalMetrics are the metrics of the journal.
type journalMetrics struct{ engine journal.Engine }

var (
	syncSeconds  = hubDesc("journal_sync_seconds", "Time of the fsyncs that posts waited for.")
	diskFree     = hubDesc("disk_free_bytes", "Free space of the disk that the data are on.")
	dataBytes    = hubDesc("data_bytes", "Bytes that the store takes.")
	unsynced     = hubDesc("journal_unsynced_bytes", "Bytes ordered and not yet durable, now.")
	journalCount = []struct {
		about *prometheus.Desc
		of    func(journal.Stats) uint64
	}{
		{hubDesc("journal_batches_total", "Batches made durable."), func(s journal.Stats) uint64 { return s.Batches }},
		{hubDesc("journal_records_total", "Records made durable."), func(s journal.Stats) uint64 { return s.Records }},
		{hubDesc("journal_bytes_total", "Bytes made durable."), func(s journal.Stats) uint64 { return s.Bytes }},
		{hubDesc("journal_syncs_total", "Fsyncs that posts waited for."), func(s journal.Stats) uint64 { return s.Syncs }},
	}
)

// Describe implements prometheus.Collector.
func (m journalMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, about := range []*prometheus.Desc{syncSeconds, diskFree, dataBytes, unsynced} {
		to <- about
	}
	for _, c := range journalCount {
		to <- c.about
	}
}

// Collect implements prometheus.Collector.
func (m journalMetrics) Collect(to chan<- prometheus.Metric) {
	s := m.engine.Stats()
	for _, c := range journalCount {
		to <- prometheus.MustNewConstMetric(c.about, prometheus.CounterValue, float64(c.of(s)))
	}
	to <- prometheus.MustNewConstMetric(unsynced, prometheus.GaugeValue, float64(s.Unsynced))
	buckets, sum := make(map[float64]uint64, len(s.SyncTimes.Counts)), uint64(0)
	for i, n := range s.SyncTimes.Counts {
		sum += n
		if i < len(s.SyncTimes.Counts)-1 { // the last has no bound
			buckets[s.SyncTimes.Bound(i).Seconds()] = sum
		}
	}
	to <- prometheus.MustNewConstHistogram(syncSeconds, sum, s.SyncTimes.Sum.Seconds(), buckets)
	if store, ok := m.engine.(interface { // those on a disk
		Space() (used, free uint64, err error)
	}); ok {
		if used, free, err := store.Space(); err == nil {
			to <- prometheus.MustNewConstMetric(diskFree, prometheus.GaugeValue, float64(free))
			to <- prometheus.MustNewConstMetric(dataBytes, prometheus.GaugeValue, float64(used))
		}
	}
}
