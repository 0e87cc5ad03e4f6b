package stats_test

import (
	"fmt"
	"math"
	"runtime"
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
		if n := r.Grew("posts", time.Minute); n < 295 || n > 310 {
			t.Errorf("the last minute: %d", n)
		}
		if _, err := r.Read(stats.Query{Series: []string{"nonsense"}}); err == nil {
			t.Error("an unknown series is answered")
		}
	})
}

func TestWhatGrewLatelyIsCountedHoweverLateTheTicksAre(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var cut float64
		r := stats.New([]stats.Series{{Name: "cut", Counter: true}}, func() stats.Reading { return stats.Reading{Values: []float64{cut}} })
		r.Record()
		for _, late := range []time.Duration{time.Second, 2500 * time.Millisecond, 7 * time.Second} {
			cut++
			<-time.After(late)
			r.Record()
		}
		if n := r.Grew("cut", 10*time.Minute); n != 3 {
			t.Errorf("%d were cut in ten minutes, want 3", n)
		}
		if n := r.Grew("nonsense", time.Minute) + (*stats.Recorder)(nil).Grew("cut", time.Minute); n != 0 {
			t.Errorf("what is not recorded grew by %d", n)
		}
		for range 11 * 60 {
			<-time.After(time.Second)
			r.Record()
		}
		if n := r.Grew("cut", 10*time.Minute); n != 0 {
			t.Errorf("%d were cut in the last ten minutes, want none", n)
		}
	})
}

// Alone, so that what others keep is not counted.
func TestTwoDaysOfEverySeriesTakeAtMostTwoMebibytes(t *testing.T) { //nolint:paralleltest // it measures the heap
	var names []stats.Series
	for i := range 24 {
		names = append(names, stats.Series{Name: fmt.Sprint("series ", i), Counter: i%2 == 0})
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc) //nolint:gosec // it is no petabyte
	}
	synctest.Test(t, func(t *testing.T) {
		values := make([]float64, len(names))
		before := heap()
		r := stats.New(names, func() stats.Reading { return stats.Reading{Values: values} })
		for range 49 * 60 * 60 {
			<-time.After(time.Second)
			r.Record()
		}
		if kept := heap() - before; kept > 2<<20 {
			t.Errorf("%d bytes are kept", kept)
		}
		for step, want := range map[time.Duration]int{time.Second: 600, 10 * time.Second: 1080, time.Minute: 2880} {
			a, err := r.Read(stats.Query{Step: step, Since: time.Unix(1, 0)})
			if err != nil {
				t.Fatal(err)
			}
			if len(a.At) != want || len(a.Series) != len(names) {
				t.Errorf("every %s: %d of %d series, want %d", step, len(a.At), len(a.Series), want)
			}
		}
	})
}
