package identity

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

// ObservedStat is the hub's own record of one capability.
type ObservedStat struct {
	N            int64  `json:"n"`
	Completed    int64  `json:"completed"`
	Failed       int64  `json:"failed"`
	Expired      int64  `json:"expired"`
	P50LatencyMS *int64 `json:"p50_latency_ms"`
}

// Outcome is how a task ended.
type Outcome string

const (
	Completed Outcome = "completed"
	Failed    Outcome = "failed"
	Expired   Outcome = "expired"
	Cancelled Outcome = "cancelled"
)

// Terminal reports whether an outcome is an end, and so counts.
func (o Outcome) Terminal() bool {
	return o == Completed || o == Failed || o == Expired || o == Cancelled
}

// Observe counts the end of a task, with its latency in milliseconds where one
// is known, and reports whether it counted. The samples are those of this
// capability; they are changed, and the resume's other fields with them.
func (r *Resume) Observe(capability string, outcome Outcome, latency *int64, samples *Samples, now time.Time) bool {
	if !outcome.Terminal() {
		return false
	}
	stat := r.Observed[capability]
	stat.N++
	switch outcome {
	case Completed:
		stat.Completed++
	case Failed:
		stat.Failed++
	case Expired:
		stat.Expired++
	}
	if latency != nil {
		samples.Add(*latency)
		median, _ := samples.Median()
		stat.P50LatencyMS = &median
	}
	if r.Observed == nil {
		r.Observed = map[string]ObservedStat{}
	}
	r.Observed[capability] = stat
	r.Version++
	r.LastUpdated = now
	return true
}

// MaxSamples is how many latencies a median is taken over.
const MaxSamples = 1024

// Samples keeps the last MaxSamples latencies.
type Samples struct {
	values []int64
	next   int // index of the oldest once full
}

// Clone returns a copy that shares no memory.
func (s *Samples) Clone() *Samples { return &Samples{values: slices.Clone(s.values), next: s.next} }

// Len returns how many latencies are kept.
func (s *Samples) Len() int { return len(s.values) }

// Add keeps a latency, in place of the oldest if there are too many.
func (s *Samples) Add(ms int64) {
	if len(s.values) < MaxSamples {
		s.values = append(s.values, ms)
		return
	}
	s.values[s.next] = ms
	s.next = (s.next + 1) % MaxSamples
}

// Median returns the middle of the kept latencies, or halfway between the two
// in the middle. It returns false if there are no samples.
func (s *Samples) Median() (int64, bool) {
	n := len(s.values)
	if n == 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(s.values))
	low, high := sorted[(n-1)/2], sorted[n/2]
	return low + int64(uint64(high-low)/2), true
}

// MarshalBinary writes the samples for storage, oldest first.
func (s *Samples) MarshalBinary() ([]byte, error) {
	var buf []byte
	for i := range s.values {
		buf = binary.AppendVarint(buf, s.values[(s.next+i)%len(s.values)])
	}
	return buf, nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (s *Samples) UnmarshalBinary(data []byte) error {
	var read Samples
	for len(data) > 0 {
		v, n := binary.Varint(data)
		if n <= 0 || len(read.values) == MaxSamples {
			return errors.New("identity: not a record of samples")
		}
		read.Add(v)
		data = data[n:]
	}
	*s = read
	return nil
}
