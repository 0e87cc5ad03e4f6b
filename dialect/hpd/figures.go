package hpd

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-hub/parley/dialect/hpd/wire"
)

// counts holds the counters since the server was created.
type counts struct {
	stored, live                 atomic.Int64 // events of producers
	completed, failed, cancelled atomic.Int64 // runs
	cutOff                       atomic.Int64 // readers of streams that fell too far behind
}

// ended counts a run by how it ended.
func (c *counts) ended(how outcome) {
	switch how.status() {
	case wire.RunCancelled:
		c.cancelled.Add(1)
	case wire.RunFailed:
		c.failed.Add(1)
	default:
		c.completed.Add(1)
	}
}

// figure describes a metric. No label contains an id.
func figure(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("parley_hpd_"+name, help, labels, nil)
}

var (
	runsActive    = figure("runs", "HPD runs active now.")
	runsEnded     = figure("runs_ended_total", "HPD runs that have ended, by how.", "outcome")
	streamsOpen   = figure("streams", "HPD event streams open now, those of remote producers included.")
	socketsOpen   = figure("sockets", "HPD WebSockets open now.")
	producersHere = figure("producers", "Connections of remote HPD producers now.")
	runsWaiting   = figure("runs_waiting", "HPD runs that wait for a remote producer now.")
	requestsOpen  = figure("requests", "Requests of HPD runs that are open now.")
	eventsTotal   = figure("events_total", "Events of HPD runs, by whether they are stored or only shown.", "kept")
	readersCut    = figure("readers_cut_off_total", "HPD readers that fell too far behind and were cut off.")
)

// Describe sends the descriptions of the metrics.
func (s *Server) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{runsActive, runsEnded, streamsOpen, socketsOpen, producersHere, runsWaiting, requestsOpen, eventsTotal, readersCut} {
		to <- d
	}
}

// Collect sends the current values of the metrics.
func (s *Server) Collect(to chan<- prometheus.Metric) {
	now := func(d *prometheus.Desc, n int) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n))
	}
	ever := func(d *prometheus.Desc, n *atomic.Int64, label ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n.Load()), label...)
	}
	workers, waiting := s.pools.count()
	now(runsActive, len(s.runs.list()))
	now(streamsOpen, len(s.streams))
	now(socketsOpen, len(s.sockets.All()))
	now(producersHere, workers)
	now(runsWaiting, waiting)
	now(requestsOpen, s.asks.count())
	ever(runsEnded, &s.counts.completed, wire.RunCompleted)
	ever(runsEnded, &s.counts.failed, wire.RunFailed)
	ever(runsEnded, &s.counts.cancelled, wire.RunCancelled)
	ever(eventsTotal, &s.counts.stored, "stored")
	ever(eventsTotal, &s.counts.live, "live")
	cut := s.counts.cutOff.Load() + s.sockets.Stats().SlowReaders
	to <- prometheus.MustNewConstMetric(readersCut, prometheus.CounterValue, float64(cut))
}

// count returns how many producers are connected, and how many runs have none.
func (c *pools) count() (workers, waiting int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.all {
		workers += len(k.workers)
		for _, w := range k.runs {
			if w == nil {
				waiting++
			}
		}
	}
	return workers, waiting
}

func (a *asks) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.all)
}
