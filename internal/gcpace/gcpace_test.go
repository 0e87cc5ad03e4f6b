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
		rate        float64
		want        int
	}{
		{64, 0, 1e9, most},
		{64, 1, 1e9, most},
		{64, 8, 1e9, 700},
		{64, 31, 1e9, 106},
		{64, 32, 1e9, 100},
		{64, 1000, 1e9, 100},
		{64, 8, 3 * 16, 200}, // in a third of a second
		{64, 8, 1, 50},
		{64, 1000, 1, 50},
	} {
		if got := percentFor(c.floor, c.live, c.rate); got != c.want {
			t.Errorf("%d live under a floor of %d, %g a second: %d %%, want %d", c.live, c.floor, c.rate, got, c.want)
		}
	}
}

// The pace follows what is alive after each collection.
func TestFloor(t *testing.T) {
	runtime.GC() // of what an earlier run held
	start(64<<20, time.Hour)
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

// A process that allocates next to nothing keeps a small heap; load lets it
// grow again, as soon as much was allocated. A short time in which little was
// allocated proves nothing.
func TestQuiet(t *testing.T) {
	t.Parallel()
	now, allocated := time.Now(), uint64(0)
	p := &pace{every: 5 * time.Second, at: now}
	for _, step := range []struct {
		pause     time.Duration
		allocated uint64
		judged    bool
		quiet     bool
	}{
		{time.Second, 100, false, false},
		{4 * time.Second, 1 << 20, true, true},
		{time.Second, 4 << 20, false, true},
		{time.Second, 4 << 20, true, false},
		{time.Second, 4 << 20, false, false},
		{4 * time.Second, 4 << 20, true, false},
		{2 * time.Minute, 56 << 20, true, true},
	} {
		now = now.Add(step.pause)
		allocated += step.allocated
		if got := p.judge(now, allocated); got != step.judged || p.quiet != step.quiet {
			t.Errorf("%d bytes in %v: judged %v as quiet %v, want %v, %v", step.allocated, step.pause, got, p.quiet, step.judged, step.quiet)
		}
	}
}

// The heap of a process that has become quiet is returned to the system, although
// nothing is allocated that would have it collected.
func TestShrinks(t *testing.T) {
	t.Cleanup(func() { debug.SetGCPercent(100) })
	debug.SetGCPercent(most)
	held := make([]byte, 256<<20)
	for i := 0; i < len(held); i += 4 << 10 {
		held[i] = 1
	}
	runtime.KeepAlive(held)
	start(1<<30, time.Millisecond)
	// Asking allocates nothing: a process that allocates is not quiet.
	classes := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	resident := func() (sum uint64) {
		metrics.Read(classes)
		for _, s := range classes {
			sum += s.Value.Uint64()
		}
		return sum
	}
	for began := time.Now(); resident() >= 64<<20; runtime.Gosched() {
		if time.Since(began) > time.Minute {
			t.Fatalf("the heap still has %d bytes", resident())
		}
	}
}
