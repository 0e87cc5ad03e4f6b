package gcpace

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestPercent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		floor, live uint64
		want        int
	}{
		{64, 0, most},
		{64, 1, most},
		{64, 8, 700},
		{64, 31, 106},
		{64, 32, 100},
		{64, 1000, 100},
	} {
		if got := percentFor(c.floor, c.live); got != c.want {
			t.Errorf("%d live under a floor of %d: %d %%, want %d", c.live, c.floor, got, c.want)
		}
	}
}

// The pace follows what is alive after each collection.
func TestFloor(t *testing.T) {
	runtime.GC() // of what an earlier run held
	start(64 << 20)
	debug.SetGCPercent(most)
	t.Cleanup(func() { debug.SetGCPercent(100) })
	percent := func() int {
		now := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(now)
		return int(now[0].Value.Uint64())
	}
	held := make([]byte, 128<<20)
	for range 1000 {
		if percent() <= 100 {
			break
		}
		runtime.GC()
		runtime.Gosched()
	}
	if got := percent(); got > 100 {
		t.Errorf("a heap above the floor is collected at %d %%", got)
	}
	runtime.KeepAlive(held)
}

// A process that allocates next to nothing keeps a small heap; the first collection
// under load lets it grow again.
func TestQuiet(t *testing.T) {
	t.Cleanup(func() { debug.SetGCPercent(100) })
	const live = 8 << 20
	now := time.Now()
	p := &pace{floor: 64 << 20, percent: 100}
	for _, step := range []struct {
		pause     time.Duration
		allocated uint64
		want      int
	}{
		{0, 64 << 20, 700}, // how fast is not known yet
		{time.Second, 56 << 20, 700},
		{2 * time.Minute, 56 << 20, quietPercent},
		{10 * time.Second, 2 << 20, quietPercent},
		{10 * time.Second, 11 << 20, 700},
	} {
		now = now.Add(step.pause)
		p.take(now, live, p.allocated+step.allocated)
		if p.percent != step.want {
			t.Errorf("%d bytes in %v: %d %%, want %d", step.allocated, step.pause, p.percent, step.want)
		}
	}
}
