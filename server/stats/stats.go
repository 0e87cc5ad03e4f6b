// Package stats keeps what a hub measured of itself, in memory: every second for ten
// minutes, every ten seconds for three hours, every minute for two days. It knows
// names and numbers, not what they mean.
package stats

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/parley-hub/parley/fault"
)

// slack is how much too early a tick may come.
const slack = 250 * time.Millisecond

// Series is one figure.
type Series struct {
	Name string
	Help string
	// Counter figures only grow; what is stored is their growth per second.
	Counter bool
}

// Reading is what was measured at one moment: NaN is not known. Since, if it is
// not nil, returns the times of fsyncs since an earlier reading.
type Reading struct {
	Values []float64 // in the order of the series
	Since  func(before any) (p50, p99, most float64)
	Mark   any // what a later reading's Since is given
}

// Names of the series that are computed from Reading.Since.
const (
	SyncP50 = "sync_p50"
	SyncP99 = "sync_p99"
	SyncMax = "sync_max"
)

// resolution is the interval and the duration of what is stored.
type resolution struct {
	step time.Duration
	keep int
}

var resolutions = []resolution{{time.Second, 600}, {10 * time.Second, 1080}, {time.Minute, 2880}}

// Recorder keeps series.
type Recorder struct {
	series []Series
	read   func() Reading
	now    func() time.Time

	mu    sync.Mutex
	rings []ring
}

// ring is one resolution of all series. Values are kept as float32, which is exact
// enough to draw.
type ring struct {
	resolution
	at     []int64   // in seconds; a ring of keep entries
	took   []float32 // seconds since the one before: a tick may be late
	values [][]float32
	next   int
	last   Reading
	lastAt time.Time
}

// New makes a recorder. Read is called once a second while Run runs.
func New(series []Series, read func() Reading) *Recorder {
	r := &Recorder{series: series, read: read, now: time.Now}
	for _, res := range resolutions {
		r.rings = append(r.rings, ring{resolution: res, values: make([][]float32, len(series))})
	}
	return r
}

// Run records until the context ends.
func (r *Recorder) Run(ctx context.Context) {
	tick := time.NewTicker(resolutions[0].step)
	defer tick.Stop()
	r.Record()
	for {
		select {
		case <-tick.C:
			r.Record()
		case <-ctx.Done():
			return
		}
	}
}

// Record takes one reading.
func (r *Recorder) Record() {
	reading, now := r.read(), r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.rings {
		g := &r.rings[i]
		if !g.lastAt.IsZero() && now.Sub(g.lastAt) < g.step-slack {
			continue
		}
		if !g.lastAt.IsZero() {
			g.add(r.series, reading, now)
		}
		g.last, g.lastAt = reading, now
	}
}

func (g *ring) add(series []Series, reading Reading, now time.Time) {
	elapsed := now.Sub(g.lastAt).Seconds()
	var times map[string]float64
	if reading.Since != nil {
		p50, p99, most := reading.Since(g.last.Mark)
		times = map[string]float64{SyncP50: p50, SyncP99: p99, SyncMax: most}
	}
	grow := len(g.at) < g.keep
	if grow {
		g.at, g.took = append(g.at, 0), append(g.took, 0)
	}
	g.at[g.next], g.took[g.next] = now.Unix(), float32(elapsed)
	for i, s := range series {
		value := reading.Values[i]
		if s.Counter {
			value = max(value-g.last.Values[i], 0) / elapsed
		}
		if t, ok := times[s.Name]; ok {
			value = t
		}
		if grow {
			g.values[i] = append(g.values[i], 0)
		}
		g.values[i][g.next] = float32(value)
	}
	g.next = (g.next + 1) % g.keep
}

// Query selects what was recorded.
type Query struct {
	Series []string // none: all
	Since  time.Time
	Step   time.Duration // 0: the finest that reaches back to Since
}

// Answer is what was recorded, oldest first. A nil value is not known.
type Answer struct {
	Step   float64               `json:"step"` // seconds
	At     []time.Time           `json:"at"`
	Series map[string][]*float64 `json:"series"`
}

// Read answers a query.
func (r *Recorder) Read(q Query) (Answer, error) {
	wanted := q.Series
	if len(wanted) == 0 {
		wanted = r.Names()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.ring(q)
	a := Answer{Step: g.step.Seconds(), At: []time.Time{}, Series: map[string][]*float64{}}
	order := make([]int, 0, len(g.at))
	for i := range g.at {
		at := (g.next + i) % len(g.at)
		if g.at[at] != 0 && !time.Unix(g.at[at], 0).Before(q.Since) {
			order = append(order, at)
		}
	}
	for _, at := range order {
		a.At = append(a.At, time.Unix(g.at[at], 0).UTC())
	}
	for _, name := range wanted {
		i := slices.IndexFunc(r.series, func(s Series) bool { return s.Name == name })
		if i < 0 {
			return Answer{}, fault.New(fault.Invalid, "series %.40q is unknown; there are %v", name, r.Names())
		}
		values := make([]*float64, 0, len(order))
		for _, at := range order {
			value := float64(g.values[i][at])
			if math.IsNaN(value) {
				values = append(values, nil)
			} else {
				values = append(values, &value)
			}
		}
		a.Series[name] = values
	}
	return a, nil
}

// ring returns the ring that answers a query: that of the requested step or the
// next coarser one, or else the finest that reaches back far enough.
func (r *Recorder) ring(q Query) *ring {
	for i := range r.rings {
		g := &r.rings[i]
		if q.Step > 0 && g.step >= q.Step || q.Step == 0 && r.now().Sub(q.Since) <= g.step*time.Duration(g.keep+1) {
			return g
		}
	}
	if q.Step == 0 && q.Since.IsZero() {
		return &r.rings[0]
	}
	return &r.rings[len(r.rings)-1]
}

// Sample is the newest value of each series.
type Sample struct {
	At     time.Time           `json:"at"`
	Series map[string]*float64 `json:"series"`
}

// Newest returns the last second; false if nothing was recorded yet.
func (r *Recorder) Newest() (Sample, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := &r.rings[0]
	if len(g.at) == 0 {
		return Sample{}, false
	}
	last := (g.next + len(g.at) - 1) % len(g.at)
	s := Sample{At: time.Unix(g.at[last], 0).UTC(), Series: make(map[string]*float64, len(r.series))}
	for i, series := range r.series {
		value := float64(g.values[i][last])
		if s.Series[series.Name] = nil; !math.IsNaN(value) {
			s.Series[series.Name] = &value
		}
	}
	return s, true
}

// Names lists the series.
func (r *Recorder) Names() []string {
	names := make([]string, len(r.series))
	for i, s := range r.series {
		names[i] = s.Name
	}
	return names
}

// Grew returns how much a counter grew lately, within at most ten minutes, or
// since recording began. A nil recorder knows none.
func (r *Recorder) Grew(name string, within time.Duration) int64 {
	if r == nil {
		return 0
	}
	i := slices.IndexFunc(r.series, func(s Series) bool { return s.Name == name })
	if i < 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g, since, sum := &r.rings[0], r.now().Add(-within), 0.0
	for at := range g.at {
		if grew := float64(g.values[i][at]) * float64(g.took[at]); !math.IsNaN(grew) && !time.Unix(g.at[at], 0).Before(since) {
			sum += grew
		}
	}
	return int64(math.Round(sum))
}
