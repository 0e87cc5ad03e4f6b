package stats_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/server/stats"
)

func TestSeriesAreKeptInThreeResolutions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		count := 0.0
		r := stats.New([]stats.Series{{Name: "posts", Counter: true}, {Name: "open"}, {Name: stats.SyncP99}}, func() stats.Reading {
			count += 5
			return stats.Reading{
				Values: []float64{count, math.NaN(), math.NaN()}, Mark: count,
				Since: func(before any) (p50, p99, most float64) { return 0, count - before.(float64), 0 },
			}
		})
		r.Record()
		for range 3 * 60 * 60 {
			<-time.After(time.Second)
			r.Record()
		}
		for _, tt := range []struct {
			since time.Duration
			step  time.Duration
			n     int
			grew  float64
		}{{5 * time.Minute, time.Second, 301, 5}, {2 * time.Hour, 10 * time.Second, 721, 50}, {40 * time.Hour, time.Minute, 180, 300}} {
			a, err := r.Read(stats.Query{Since: time.Now().Add(-tt.since)})
			if err != nil {
				t.Fatal(err)
			}
			if a.Step != tt.step.Seconds() || len(a.At) != tt.n {
				t.Errorf("the last %s: %d of %v s, want %d of %s", tt.since, len(a.At), a.Step, tt.n, tt.step)
				continue
			}
			last := len(a.At) - 1
			if posts := a.Series["posts"][last]; posts == nil || math.Abs(*posts-5) > 0.01 {
				t.Errorf("the last %s: posts %v, want 5 a second", tt.since, posts)
			}
			if a.Series["open"][last] != nil {
				t.Error("what is not known is shown")
			}
			if p99 := a.Series[stats.SyncP99][last]; p99 == nil || *p99 != tt.grew {
				t.Errorf("the last %s: p99 %v, want %v", tt.since, *p99, tt.grew)
			}
			for i := 1; i < len(a.At); i++ {
				if !a.At[i].After(a.At[i-1]) {
					t.Fatal("out of order")
				}
			}
		}
		if n := r.LastMinute("posts"); n < 295 || n > 310 {
			t.Errorf("the last minute: %d", n)
		}
		if _, err := r.Read(stats.Query{Series: []string{"nonsense"}}); err == nil {
			t.Error("an unknown series is answered")
		}
	})
}
