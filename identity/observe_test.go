package identity_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/identity"
)

func TestObserve(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 9, 10, 0, 0, 0, time.UTC)
	spec.Check(t, "ag2-hub#40: each outcome counts and n totals", func(t *spec.T) {
		r := identity.Resume{Version: 4}
		var samples identity.Samples
		for _, outcome := range []identity.Outcome{identity.Completed, identity.Completed, identity.Failed, identity.Expired, identity.Expired, identity.Expired} {
			t.True(r.Observe("ocr", outcome, nil, &samples, now), "%s counts", outcome)
		}
		t.Equal(r, identity.Resume{
			Observed: map[string]identity.ObservedStat{"ocr": {N: 6, Completed: 2, Failed: 1, Expired: 3}},
			Version:  10, LastUpdated: now,
		})
	})
	spec.Check(t, "ag2-hub#40: one sample yields that sample, several their median", func(t *spec.T) {
		var r identity.Resume
		var samples identity.Samples
		medians := []int64{}
		for _, latency := range []int64{840, 100, 300} {
			r.Observe("ocr", identity.Completed, new(latency), &samples, now)
			medians = append(medians, *r.Observed["ocr"].P50LatencyMS)
		}
		t.Equal(medians, []int64{840, 470, 300})
	})
	spec.Check(t, "ag2-hub#40: the median is of the last 1,024", func(t *spec.T) {
		var r identity.Resume
		var samples identity.Samples
		for range 600 {
			r.Observe("ocr", identity.Completed, new(int64(10)), &samples, now)
		}
		for range 512 {
			r.Observe("ocr", identity.Completed, new(int64(20)), &samples, now)
		}
		t.Equal(*r.Observed["ocr"].P50LatencyMS, int64(15))
		r.Observe("ocr", identity.Completed, new(int64(20)), &samples, now)
		t.Equal(*r.Observed["ocr"].P50LatencyMS, int64(20))
	})
	spec.Check(t, "ag2-hub#42: a resume stays as it was", func(t *spec.T) {
		for _, outcome := range []identity.Outcome{"created", "running", "", "done"} {
			r := identity.Resume{Version: 4}
			var samples identity.Samples
			t.False(r.Observe("ocr", outcome, new(int64(1)), &samples, now), "%s counts", outcome)
			_, kept := samples.Median()
			t.False(kept, "a sample was kept")
			t.Equal(r, identity.Resume{Version: 4})
		}
	})
	spec.Check(t, "ag2-hub#44: cancelled outcome raises n", func(t *spec.T) {
		r := identity.Resume{Observed: map[string]identity.ObservedStat{"ocr": {N: 3, Completed: 2, Failed: 1}}}
		var samples identity.Samples
		r.Observe("ocr", identity.Cancelled, nil, &samples, now)
		t.Equal(r.Observed, map[string]identity.ObservedStat{"ocr": {N: 4, Completed: 2, Failed: 1}})
	})
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	r := identity.Resume{ClaimedCapabilities: []string{"z", "a", "a"}, Observed: map[string]identity.ObservedStat{"m": {}, "z": {}}}
	if diff := cmp.Diff([]string{"a", "m", "z"}, r.Capabilities()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !r.Has("m") || !r.Has("a") || r.Has("b") {
		t.Error("Has disagrees")
	}
}

// Samples survive storage in order, and their median is the middle of the last
// 1,024.
func TestSamplesLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Int64(), 0, 40).Draw(t, "all")
		repeat := rapid.SampledFrom([]int{1, 60}).Draw(t, "repeat")
		var s identity.Samples
		var kept []int64
		for range repeat {
			for _, v := range all {
				s.Add(v)
				kept = append(kept, v)
			}
		}
		kept = kept[max(0, len(kept)-identity.MaxSamples):]
		stored, err := s.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var loaded identity.Samples
		if err := loaded.UnmarshalBinary(stored); err != nil {
			t.Fatal(err)
		}
		s.Add(7)
		loaded.Add(7)
		kept = append(kept, 7)
		kept = slices.Sorted(slices.Values(kept[max(0, len(kept)-identity.MaxSamples):]))
		got, _ := s.Median()
		again, _ := loaded.Median()
		low, high := kept[(len(kept)-1)/2], kept[len(kept)/2]
		if got != again || got < low || got > high || low == high && got != low {
			t.Fatalf("medians %d and %d; want between %d and %d", got, again, low, high)
		}
	})
	var s identity.Samples
	s.Add(math.MinInt64)
	s.Add(math.MaxInt64)
	if got, _ := s.Median(); got != -1 {
		t.Errorf("the middle of the extremes is %d, want -1", got)
	}
	if s.UnmarshalBinary([]byte{0x80}) == nil || s.UnmarshalBinary(make([]byte, identity.MaxSamples+1)) == nil {
		t.Error("a broken record is read")
	}
}
