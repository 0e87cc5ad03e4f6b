package journal

import (
	"math/bits"
	"time"
)

// State is whether an engine admits appends.
type State uint8

// States of an engine. Ready, Full and Waiting come and go; the others are final.
const (
	Ready  State = iota // appends are admitted
	Full                // too little room on the disk; reads work
	Broken              // the storage failed; reads may work
	Closed
	Waiting // another node leads, or not enough of them answer; appends are refused or wait, reads work
)

// String names the state.
func (s State) String() string {
	switch s {
	case Ready:
		return "ready"
	case Full:
		return "full"
	case Broken:
		return "failed"
	case Closed:
		return "closed"
	case Waiting:
		return "waiting"
	}
	return "unknown"
}

// Health is an engine's state, and the error that Append returns in it.
type Health struct {
	State State
	Err   error
}

// Stats count what an engine did since it was opened.
type Stats struct {
	Batches  uint64 // made durable
	Records  uint64
	Bytes    uint64 // as Batch.Size counts them
	Groups   uint64 // commits; each made one or more batches durable
	Syncs    uint64 // fsyncs that appends waited for
	Unsynced int64  // bytes ordered and not yet durable, now
	Removals int    // drops whose removal is still running, now
	// SyncTimes tells how long those fsyncs took.
	SyncTimes Histogram
}

// Histogram counts durations in buckets whose bounds double: bucket i holds what
// took less than 16 µs · 2^i, and the last one the rest.
type Histogram struct {
	Counts [24]uint64
	Sum    time.Duration
}

// Bound is the upper end of a bucket.
func (h *Histogram) Bound(i int) time.Duration { return 16 * time.Microsecond << i }

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) {
	i := bits.Len64(uint64(max(d, 0) / (16 * time.Microsecond)))
	h.Counts[min(i, len(h.Counts)-1)]++
	h.Sum += d
}

// Since is what was counted after an earlier moment.
func (h Histogram) Since(before Histogram) Histogram {
	for i := range h.Counts {
		h.Counts[i] -= before.Counts[i]
	}
	h.Sum -= before.Sum
	return h
}

// Total is how many were counted.
func (h *Histogram) Total() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile is the bound that a share of all did not exceed; 0 if none were counted.
func (h *Histogram) Quantile(share float64) time.Duration {
	total := h.Total()
	if total == 0 {
		return 0
	}
	want, sum := uint64(share*float64(total)+0.5), uint64(0)
	for i, c := range h.Counts {
		if sum += c; sum >= max(want, 1) {
			return h.Bound(i)
		}
	}
	return h.Bound(len(h.Counts) - 1)
}
