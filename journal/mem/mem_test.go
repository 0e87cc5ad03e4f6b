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

func TestExercise(t *testing.T) { journaltest.Exercise(t, open) }

func open(t testing.TB, opts journaltest.Options) (journal.Engine, journaltest.Faults) {
	return reopen(t, mem.NewStore(), opts)
}

func reopen(t testing.TB, store *mem.Store, opts journaltest.Options) (journal.Engine, journaltest.Faults) {
	t.Helper()
	e, err := mem.Open(mem.Options{Store: store, Now: opts.Now, MaxUnsynced: opts.MaxUnsynced})
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

func (f faults) LoseIndex(testing.TB) { f.store.LoseIndex() }

func (f faults) Reopen(t testing.TB) (journal.Engine, journaltest.Faults) {
	t.Helper()
	return reopen(t, f.store, f.opts)
}

func (f faults) Restore(t testing.TB, dir string) (journal.Engine, journaltest.Faults) {
	t.Helper()
	store, err := mem.Restore(dir)
	if err != nil {
		t.Fatal(err)
	}
	return reopen(t, store, f.opts)
}

func TestRandom(t *testing.T) {
	t.Parallel()
	journaltest.Random(t, open)
}
