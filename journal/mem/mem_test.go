package mem_test

import (
	"flag"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/journaltest"
	"github.com/parley-hub/parley/journal/mem"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", strconv.Itoa(scale.N(40)))
	goleak.VerifyTestMain(m)
}

func TestExercise(t *testing.T) { journaltest.Exercise(t, open(1)) }

func TestExerciseEightShards(t *testing.T) { journaltest.Exercise(t, open(8)) }

func open(shards int) journaltest.Open {
	return func(t testing.TB, opts journaltest.Options) (journal.Engine, journaltest.Faults) {
		return reopen(t, mem.NewStore(), shards, opts)
	}
}

func reopen(t testing.TB, store *mem.Store, shards int, opts journaltest.Options) (journal.Engine, journaltest.Faults) {
	t.Helper()
	e, err := mem.Open(mem.Options{Store: store, Shards: shards, Now: opts.Now, MaxUnsynced: opts.MaxUnsynced})
	if err != nil {
		t.Fatal(err)
	}
	return e, faults{e.Faults(), store, opts}
}

type faults struct {
	*mem.Faults
	store *mem.Store
	opts  journaltest.Options
}

func (f faults) FailSync() bool {
	f.Faults.FailSync()
	return true
}

func (f faults) LoseIndex(testing.TB) { f.store.LoseIndex() }

func (f faults) Reopen(t testing.TB) (journal.Engine, journaltest.Faults) {
	t.Helper()
	return reopen(t, f.store, 0, f.opts)
}

func (f faults) Restore(t testing.TB, dir string) (journal.Engine, journaltest.Faults) {
	t.Helper()
	store, err := mem.Restore(dir)
	if err != nil {
		t.Fatal(err)
	}
	return reopen(t, store, 0, f.opts)
}

func TestRandom(t *testing.T) {
	t.Parallel()
	journaltest.Random(t, open(1))
}

func TestRandomEightShards(t *testing.T) {
	t.Parallel()
	journaltest.Random(t, open(8))
}

func TestShardsAreFixed(t *testing.T) {
	t.Parallel()
	store := mem.NewStore()
	for _, c := range []struct {
		ask  int
		want int // 0: refused
	}{{-1, 0}, {8, 8}, {0, 8}, {8, 8}, {1, 0}} {
		e, err := mem.Open(mem.Options{Store: store, Shards: c.ask})
		if c.want == 0 {
			if err == nil {
				t.Fatalf("a store of 8 shards was opened with %d", c.ask)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.Shards() != c.want {
			t.Errorf("asked for %d shards, got %d, want %d", c.ask, e.Shards(), c.want)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
