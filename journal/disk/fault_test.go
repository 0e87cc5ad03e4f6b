package disk_test

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
)

// TestOneSyncServesAll counts syncs of the store's log on the file system.
func TestOneSyncServesAll(t *testing.T) {
	t.Parallel()
	fs := &faultFS{FS: vfs.NewMem()}
	e := mustOpen(t, fs)
	defer mustClose(t, e)
	commit(t, e, diaryEntry(1, 1))
	reached, release := fs.HoldSync()
	defer release()
	first, err := e.Append(ctx, diaryEntry(2, 1))
	if err != nil {
		t.Fatal(err)
	}
	<-reached
	before := fs.syncs.Load() // including the held sync
	var behind []*journal.Ticket
	for i := range 40 {
		ticket, err := e.Append(ctx, journal.Batch{Appends: []journal.Append{{
			Log: layer(i), Records: []journal.Record{{Data: []byte("x")}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		behind = append(behind, ticket)
	}
	for _, ticket := range append(behind, first) {
		if ticket.Outcome() != journal.Pending {
			t.Fatalf("the ticket of offset %d ended %v while the sync was held", ticket.Offset(), ticket.Outcome())
		}
	}
	release()
	for _, ticket := range behind {
		if err := ticket.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if more := fs.syncs.Load() - before; more != 1 {
		t.Errorf("40 batches behind a sync took %d syncs, want 1", more)
	}
}

// TestSyncsAreShared runs many writers at once, and counts the syncs.
func TestSyncsAreShared(t *testing.T) {
	t.Parallel()
	fs := &faultFS{FS: vfs.NewMem(), syncTime: 200 * time.Microsecond}
	e := mustOpen(t, fs)
	defer mustClose(t, e)
	commit(t, e, diaryEntry(1, 1))
	before := fs.syncs.Load()
	const writers, each = 64, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range each {
				ticket, err := e.Append(ctx, journal.Batch{Appends: []journal.Append{{
					Log: layer(w), Records: []journal.Record{{Data: make([]byte, 600)}},
				}}})
				if err == nil {
					err = ticket.Wait(ctx)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if syncs := fs.syncs.Load() - before; syncs > writers*each/10 {
		t.Errorf("%d appends took %d syncs, want at most a tenth", writers*each, syncs)
	}
}

// fullEngine returns an engine with one entry, and less free space than data.min_free.
func fullEngine(t *testing.T) (*disk.Engine, *faultFS) {
	t.Helper()
	fs := &faultFS{FS: vfs.NewMem()}
	opts := testOptions(fs)
	opts.MinFree = 0 // the default, 512 MiB
	e, err := disk.Open("/data", opts)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, e, diaryEntry(1, 1))
	fs.free.Store(511 << 20)
	waitUntil(t, "the engine is full", func() bool { return e.Health().State == journal.Full })
	return e, fs
}

// TestAFullDiskIsRefusedBeforePebbleSeesIt reduces the free space and restores it.
func TestAFullDiskIsRefusedBeforePebbleSeesIt(t *testing.T) {
	t.Parallel()
	e, fs := fullEngine(t)
	defer mustClose(t, e)
	_, err := e.Append(ctx, diaryEntry(2, 1))
	if !errors.Is(err, journal.ErrNoSpace) || !journal.Retryable(err) || !strings.Contains(err.Error(), "512 MiB") {
		t.Errorf("a full disk is answered with %v", err)
	}
	if got := readDiary(t, e); len(got) != 1 {
		t.Errorf("reads give %v", got)
	}
	fs.free.Store(513 << 20)
	waitUntil(t, "the engine is ready", func() bool { return e.Health().State == journal.Ready })
	commit(t, e, diaryEntry(2, 1))
}

// TestWhatIsOrderedFailsWhenTheLastRoomGoes: an ordered batch never reaches Pebble, so
// it is certain that it was not written, and the engine continues.
func TestWhatIsOrderedFailsWhenTheLastRoomGoes(t *testing.T) {
	t.Parallel()
	fs := &faultFS{FS: vfs.NewMem()}
	opts := testOptions(fs)
	opts.MinFree = 1 << 20
	e, err := disk.Open("/data", opts.Measured())
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, e)
	commit(t, e, diaryEntry(1, 1))
	reached, release := fs.HoldSync()
	defer release()
	first, err := e.Append(ctx, diaryEntry(2, 1))
	if err != nil {
		t.Fatal(err)
	}
	<-reached
	second, err := e.Append(ctx, diaryEntry(3, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Drop(ctx, diary); err != nil {
		t.Fatal(err)
	}
	fs.free.Store(1 << 10)
	release()
	if err := first.Wait(ctx); err != nil {
		t.Errorf("what was in flight: %v", err)
	}
	err = second.Wait(ctx)
	if second.Outcome() != journal.Failed || !errors.Is(err, journal.ErrNoSpace) {
		t.Errorf("what stood behind ended %v: %v", second.Outcome(), err)
	}
	fs.free.Store(0)
	waitUntil(t, "the engine is ready", func() bool { return e.Health().State == journal.Ready })
	b := diaryEntry(3, 1)
	b.Term = second.Term()
	var conflict *journal.ConflictError
	if _, err := e.Append(ctx, b); !errors.As(err, &conflict) || conflict.Kind != journal.TermConflict {
		t.Errorf("a batch of the forgotten term is answered with %v", err)
	}
	b.Term = 0
	if ticket := commit(t, e, b); ticket.Offset() != second.Offset() {
		t.Errorf("the next batch has offset %d, want %d", ticket.Offset(), second.Offset())
	}
	if got := readDiary(t, e); len(got) != 3 {
		t.Errorf("the diary is %v", got)
	}
}

// TestPoison runs its cases in a child, because they leave a Pebble store that can
// never be closed.
func TestPoison(t *testing.T) {
	t.Parallel()
	if !inChild(t) {
		return
	}
	for _, c := range []struct {
		name string
		do   func(t *testing.T, fs *faultFS, e *disk.Engine)
		want string
	}{
		{"a failed flush", func(t *testing.T, fs *faultFS, e *disk.Engine) {
			fs.failTables.Store(true)
			go e.FlushStore() //nolint:errcheck // it never ends
		}, "injected fault"},
		{"a sync that never ends", func(t *testing.T, fs *faultFS, e *disk.Engine) {
			fs.HoldSync()
			if _, err := e.Append(ctx, diaryEntry(2, 1)); err != nil {
				t.Error(err)
			}
		}, "a commit has taken more than"},
		{"a write stall", func(t *testing.T, fs *faultFS, e *disk.Engine) {
			fs.holdTables.Store(true) // flushing stops, so the in-memory tables fill up
			go func() {
				for {
					ticket, err := e.Append(ctx, diaryEntry(2, 100<<10))
					if err != nil || ticket.Wait(ctx) != nil {
						return
					}
				}
			}()
		}, "held writes back"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fs := &faultFS{FS: vfs.NewMem()}
			opts := testOptions(fs)
			opts.StallLimit, opts.SyncLimit = time.Second, 3*time.Second
			e, err := disk.Open("/data", opts)
			if err != nil {
				t.Fatal(err)
			}
			ticket := commit(t, e, diaryEntry(1, 1))
			c.do(t, fs, e)
			select {
			case <-e.Failed():
			case <-time.After(time.Minute):
				t.Fatal("the engine does not notice")
			}
			health := e.Health()
			if health.State != journal.Broken || !strings.Contains(health.Err.Error(), c.want) {
				t.Errorf("the engine is %v: %v", health.State, health.Err)
			}
			if _, err := e.Append(ctx, diaryEntry(3, 1)); !errors.Is(err, journal.ErrFailed) {
				t.Errorf("it answers %v", err)
			}
			if heads, err := e.Head(ctx, diary); err != nil || heads.Durable.Seq < ticket.Appended()[0].Last {
				t.Errorf("it reads %+v, %v", heads, err)
			}
			// The folder cannot be opened again in this process.
			fs.release()
			_ = e.Close()
			if _, err := disk.Open("/data", opts); !errors.Is(err, journal.ErrFailed) {
				t.Errorf("opening again is answered with %v", err)
			}
		})
	}
}

// TestPebblesOwnCommitWouldLie shows why the engine waits for the sync itself:
// with a logger that returns, a commit whose sync failed returns nil.
func TestPebblesOwnCommitWouldLie(t *testing.T) {
	t.Parallel()
	fs := &faultFS{FS: vfs.NewMem()}
	fatal := 0
	db, err := pebble.Open("/db", &pebble.Options{FS: fs, Logger: countFatal{&fatal}})
	if err != nil {
		t.Fatal(err)
	}
	fs.FailSync()
	err = db.Set([]byte("k"), []byte("v"), pebble.Sync)
	if err != nil || fatal != 1 {
		t.Errorf("Pebble's commit has changed: error %v, %d fatal messages", err, fatal)
	}
	_ = db.Close()

	other := &faultFS{FS: vfs.NewMem()}
	db, err = pebble.Open("/db", &pebble.Options{FS: other, Logger: countFatal{&fatal}})
	if err != nil {
		t.Fatal(err)
	}
	other.FailSync()
	b := db.NewBatch()
	if err := b.Set([]byte("k"), []byte("v"), nil); err != nil {
		t.Fatal(err)
	}
	if err := db.ApplyNoSyncWait(b, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := b.SyncWait(); !errors.Is(err, errInjected) {
		t.Errorf("waiting for the sync returned %v", err)
	}
	_ = db.Close()
}

type countFatal struct{ n *int }

func (countFatal) Infof(string, ...any)    {}
func (countFatal) Errorf(string, ...any)   {}
func (c countFatal) Fatalf(string, ...any) { *c.n++ }

func waitUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come about that %s", what)
		}
	}
}

// TestExpiredClaimsAreSwept counts the claims in the store: expired ones are removed,
// those taken again stay.
func TestExpiredClaimsAreSwept(t *testing.T) {
	t.Parallel()
	var clock atomic.Int64
	clock.Store(1_700_000_000_000)
	opts := testOptions(vfs.NewMem())
	opts.Now = func() time.Time { return time.UnixMilli(clock.Load()) }
	e, err := disk.Open("/data", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, e)
	soon := opts.Now().Add(time.Minute)
	take := func(log journal.LogName, takes ...journal.Take) {
		commit(t, e, journal.Batch{Appends: []journal.Append{{Log: log, Records: []journal.Record{{Take: takes}}}}})
	}
	take(layer(1), journal.Take{Name: "a", Expires: soon}, journal.Take{Name: "b", Expires: soon}, journal.Take{Name: "for ever"})
	clock.Add(time.Minute.Milliseconds())
	take(layer(2), journal.Take{Name: "b", Expires: opts.Now().Add(time.Hour)})
	waitUntil(t, "expired claims are swept", func() bool {
		claims, expiries, err := e.StoredClaims()
		return err == nil && claims == 2 && expiries == 1
	})
	for name, want := range map[string]journal.LogName{"b": layer(2), "for ever": layer(1)} {
		if state, err := e.Claim(ctx, 0, name); err != nil || state.Durable == nil || state.Durable.Log != want {
			t.Errorf("claim %q is %+v, %v", name, state.Durable, err)
		}
	}
}
