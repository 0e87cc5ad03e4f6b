// Package journaltest is the test suite that every journal engine must pass. It uses
// an engine only through journal.Engine and a fault handle, and does not depend on how
// an engine stores its data.
package journaltest

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-hub/parley/journal"
)

// Options configure the engine to be opened. Zero values mean the engine's defaults.
type Options struct {
	Now         func() time.Time
	MaxUnsynced int64 // ordered bytes that are not durable before Append waits
}

// Open opens an engine on a new, empty store.
type Open func(t testing.TB, opts Options) (journal.Engine, Faults)

// Faults makes the store of an engine misbehave, and opens it again.
type Faults interface {
	// HoldSync keeps the next sync, and all after it, from ending until
	// release is called. The channel is closed when a sync has begun and is
	// held.
	HoldSync() (reached <-chan struct{}, release func())
	// FailWrite makes the next group of batches fail before or while it is
	// passed to the store.
	FailWrite()
	// FailSync makes the next sync fail. It reports whether that ends the engine;
	// otherwise the engine determines the outcome of the batch.
	FailSync() (ends bool)
	// Crash ends the engine as a loss of power would: what was not synced is
	// lost. Calls in flight return; Close is called afterwards.
	Crash()
	// LoseIndex removes the index and the claims, or the mark that they are
	// complete. It is called while the engine is closed.
	LoseIndex(t testing.TB)
	// Reopen opens the store again after Close, or after Crash and Close.
	Reopen(t testing.TB) (journal.Engine, Faults)
	// Restore makes a new store from a checkpoint and opens it.
	Restore(t testing.TB, dir string) (journal.Engine, Faults)
}

// Exercise runs the suite. The calling test must not be parallel, so that leaked
// goroutines can be distinguished from those of other tests.
func Exercise(t *testing.T, open Open) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Run("engine", func(t *testing.T) {
		for _, c := range cases() {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, open)
			})
		}
	})
	t.Run("nothing is left running", func(t *testing.T) { endsAfterAll(t, before) })
}

// endsAfterAll requires that all goroutines end, except those that but ignores. A
// failed engine waits only a limited time for its store to close, so on a busy machine
// goroutines may end after Close.
func endsAfterAll(t *testing.T, but goleak.Option) {
	t.Helper()
	var err error
	for range 100 { // each try waits for a while
		if err = goleak.Find(but); err == nil {
			return
		}
	}
	t.Error(err)
}

type testCase struct {
	name string
	run  func(t *testing.T, open Open)
}

func cases() []testCase {
	var all []testCase
	for _, list := range [][]testCase{
		batchCases, claimCases, valueCases, indexCases, ticketCases, readCases,
		followCases, gapCases, dropCases, lifeCases, shardCases, snapshotCases,
	} {
		all = append(all, list...)
	}
	return all
}
