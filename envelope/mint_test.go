package envelope_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/envelope"
)

func TestIDsIncreaseWhateverTheClockDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := envelope.NewMinter(0, time.Second, nil)
		last := ""
		for _, ns := range rapid.SliceOf(rapid.Int64()).Draw(rt, "clock") {
			id, err := m.Mint(time.Unix(0, ns), "")
			if err != nil || !envelope.ValidID(id) || id <= last {
				rt.Fatalf("minted %q after %q, %v", id, last, err)
			}
			last = id
		}
	})
}

func TestIDsAreAboveTheLogsLast(t *testing.T) {
	t.Parallel()
	m := envelope.NewMinter(0, time.Second, nil)
	now := time.Unix(100, 0)
	after, _ := envelope.NewMinter(0, time.Second, nil).Mint(now.Add(time.Hour), "")
	id, err := m.Mint(now, after)
	if err != nil || id <= after {
		t.Errorf("minted %s, not above %s (%v)", id, after, err)
	}
	if id[:16] == after[:16] {
		t.Errorf("minted %s within the same stamp as %s: its random half decided", id, after)
	}
	// A stamp alone is enough to be above.
	if id, err := m.Mint(now, "1234567890abcdee"); err != nil || id[:16] != "1234567890abcdef" {
		t.Errorf("minted %s above a bare stamp (%v)", id, err)
	}
	for _, odd := range []string{"", "short", "zzzzzzzzzzzzzzzzzzzz"} {
		if _, err := m.Mint(now, odd); err != nil {
			t.Errorf("after %q: %v", odd, err)
		}
	}
}

func TestIDsCarryTheTime(t *testing.T) {
	t.Parallel()
	id, err := envelope.NewMinter(0, time.Second, nil).Mint(time.Unix(0, 0x18a0c4), "")
	if err != nil || id[:16] != "000000000018a0c4" {
		t.Errorf("got %s, %v", id, err)
	}
}

func TestFloorIsReservedBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	var floors []uint64
	m := envelope.NewMinter(1000, 50, func(floor uint64) error {
		floors = append(floors, floor)
		return nil
	})
	mint := func(ns int64, want string) {
		t.Helper()
		id, err := m.Mint(time.Unix(0, ns), "")
		if err != nil || id[:16] != want {
			t.Errorf("Mint(%d) = %s, %v; want %s…", ns, id, err, want)
		}
	}
	mint(0, "00000000000003e9")    // 1001: above the floor
	mint(1051, "000000000000041b") // the last reserved one
	if want := []uint64{1051}; len(floors) != 1 || floors[0] != want[0] {
		t.Fatalf("reserved %v, want %v", floors, want)
	}
	mint(0, "000000000000041c") // 1052
	if len(floors) != 2 || floors[1] != 1102 {
		t.Errorf("reserved %v, want a second time up to 1102", floors)
	}
}

func TestNoIDWithoutItsFloor(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk full")
	m := envelope.NewMinter(0, time.Second, func(uint64) error { return broken })
	if id, err := m.Mint(time.Unix(1, 0), ""); !errors.Is(err, broken) || id != "" {
		t.Errorf("got %q, %v", id, err)
	}
}

func TestConcurrentMintsAreUnique(t *testing.T) {
	t.Parallel()
	m := envelope.NewMinter(0, time.Second, nil)
	now := time.Unix(1, 0)
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			last := ""
			for range 200 {
				id, _ := m.Mint(now, "")
				if id <= last {
					t.Errorf("%s is not above %s", id, last)
				}
				last = id
				mu.Lock()
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 1600 {
		t.Errorf("%d distinct ids, want 1600", len(seen))
	}
}

func TestValidID(t *testing.T) {
	t.Parallel()
	good := "0123456789abcdef0123456789abcdef"
	for id, want := range map[string]bool{
		good: true, good[1:]: false, good + "0": false, "": false,
		"0123456789ABCDEF0123456789abcdef": false, "g123456789abcdef0123456789abcdef": false,
		"/123456789abcdef0123456789abcdef": false, ":123456789abcdef0123456789abcdef": false,
		"`123456789abcdef0123456789abcdef": false,
	} {
		if got := envelope.ValidID(id); got != want {
			t.Errorf("ValidID(%q) = %v", id, got)
		}
	}
	if id := envelope.NewID(); !envelope.ValidID(id) || id == envelope.NewID() {
		t.Errorf("NewID: %s", id)
	}
}
