package gcpace

import (
	"runtime"
	"runtime/debug"
	"testing"
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

// A small heap is collected less often, and the pace follows what is alive.
func TestFloor(t *testing.T) {
	runtime.GC() // of what an earlier run held
	start(64 << 20)
	t.Cleanup(func() { debug.SetGCPercent(100) })
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	if got := percent(); got <= 100 {
		t.Fatalf("a small heap is collected at %d %%", got)
	}
	held := make([]byte, 128<<20)
	for range 1000 {
		if percent() == 100 {
			break
		}
		runtime.GC()
		runtime.Gosched()
	}
	if got := percent(); got != 100 {
		t.Errorf("a heap above the floor is collected at %d %%", got)
	}
	runtime.KeepAlive(held)
}
