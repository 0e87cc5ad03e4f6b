package identity_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/identity"
)

func TestBucket(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 9, 10, 0, 0, 0, time.UTC)
	type step struct {
		at   time.Duration
		ok   bool
		wait time.Duration
	}
	tests := []struct {
		name  string
		rate  identity.Rate
		steps []step
	}{
		{"none", identity.Rate{}, []step{{0, true, 0}, {0, true, 0}}},
		{"burst without a rate is none", identity.Rate{Burst: 1}, []step{{0, true, 0}, {0, true, 0}}},
		{"as many at once as in a minute", identity.Rate{PerMinute: 2}, []step{{0, true, 0}, {0, true, 0}, {0, false, 30 * time.Second}, {29 * time.Second, false, time.Second}, {30 * time.Second, true, 0}, {30 * time.Second, false, 30 * time.Second}}},
		{"a burst of its own", identity.Rate{PerMinute: 60, Burst: 1}, []step{{0, true, 0}, {0, false, time.Second}, {time.Second, true, 0}, {time.Hour, true, 0}, {time.Hour, false, time.Second}}},
		{"a refusal costs nothing", identity.Rate{PerMinute: 1}, []step{{0, true, 0}, {0, false, time.Minute}, {0, false, time.Minute}, {time.Minute, true, 0}}},
		{"a clock that steps back gives nothing", identity.Rate{PerMinute: 1}, []step{{0, true, 0}, {-time.Minute, false, 2 * time.Minute}}},
		{"numbers beyond measure", identity.Rate{PerMinute: math.MaxInt64, Burst: math.MaxInt64}, []step{{0, true, 0}, {0, true, 0}}},
		{"a burst beyond measure", identity.Rate{PerMinute: 1, Burst: math.MaxInt64}, []step{{0, true, 0}, {0, true, 0}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := identity.NewBucket(tt.rate)
			for i, s := range tt.steps {
				if ok, wait := b.Take(start.Add(s.at)); ok != s.ok || wait != s.wait {
					t.Fatalf("step %d: got %v, %v; want %v, %v", i, ok, wait, s.ok, s.wait)
				}
			}
		})
	}
}

// In any interval no more is admitted than the burst and what was refilled
// meanwhile, and waiting for the returned time is enough.
func TestBucketLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := identity.Rate{PerMinute: rapid.Int64Range(1, 600).Draw(t, "per minute"), Burst: rapid.Int64Range(1, 20).Draw(t, "burst")}
		b := identity.NewBucket(rate)
		start := time.Date(2026, 3, 9, 10, 0, 0, 0, time.UTC)
		now, taken := start, int64(0)
		for range 100 {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "step")))
			ok, wait := b.Take(now)
			if !ok {
				now = now.Add(wait)
				if ok, _ = b.Take(now); !ok {
					t.Fatalf("refused after waiting %v", wait)
				}
			}
			taken++
			every := time.Minute / time.Duration(rate.PerMinute)
			if most := rate.Burst + int64(now.Sub(start)/every); taken > most {
				t.Fatalf("%d taken, at most %d", taken, most)
			}
		}
	})
}
