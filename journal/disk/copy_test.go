package disk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
)

// sharedLog is a log that stores are copies of. Its sequences begin at 1.
type sharedLog struct {
	mu     sync.Mutex
	groups []disk.Group
	refuse error // the error with which the next group is lost
}

func (l *sharedLog) ship(g disk.Group) (disk.Place, journal.Outcome, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refuse; err != nil {
		l.refuse = nil
		return disk.Place{}, journal.Failed, err
	}
	g.Batch = bytes.Clone(g.Batch)
	l.groups = append(l.groups, g)
	return l.place(len(l.groups)), journal.Durable, nil
}

func (l *sharedLog) place(n int) disk.Place {
	return disk.Place{Epoch: 1, Seq: uint64(n), Chain: [16]byte{byte(n)}}
}

func (l *sharedLog) open(t testing.TB, fs vfs.FS) *disk.Copy {
	t.Helper()
	c, err := disk.OpenCopy("/data", disk.Options{FS: fs}.FewClaims(), disk.CopyOptions{Shards: 1, GroupBytes: 1 << 20, Ship: l.ship})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// follow applies the groups that a copy does not have.
func (l *sharedLog) follow(t testing.TB, c *disk.Copy) {
	t.Helper()
	err := c.Exclusively(ctx, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for n := int(c.At().Seq) + 1; n <= len(l.groups); n++ {
			if err := c.Apply(l.groups[n-1], l.place(n)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// all returns the shipped groups.
func (l *sharedLog) all() []disk.Group {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.groups
}

// at returns the place of a copy.
func at(t testing.TB, c *disk.Copy) (p disk.Place) {
	t.Helper()
	if err := c.Exclusively(ctx, func() error { p = c.At(); return nil }); err != nil {
		t.Fatal(err)
	}
	return p
}

func takeOver(t testing.TB, c *disk.Copy, term uint64) {
	t.Helper()
	if err := c.Exclusively(ctx, func() error { return c.TakeOver(term) }); err != nil {
		t.Fatal(err)
	}
}

func same(t testing.TB, a, b journal.Engine) {
	t.Helper()
	want, errs := readAll(a)
	got, more := readAll(b)
	if err := errors.Join(append(errs, more...)...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the copies differ (-a +b):\n%s", diff)
	}
	one, err := a.Place(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.Place(ctx, 0)
	if err != nil || one.Durable != other.Durable || one.Epoch != other.Epoch || other.Ordered != other.Durable {
		t.Fatalf("one copy is at %+v, the other at %+v (%v)", one, other, err)
	}
}

// TestCopies: one copy orders, the other applies the same bytes and has the same
// contents; then it takes over, and the first one follows.
func TestCopies(t *testing.T) {
	t.Parallel()
	log := &sharedLog{}
	a, b := log.open(t, vfs.NewMem()), log.open(t, vfs.NewMem())
	takeOver(t, a, 1)
	populate(t, a)
	follower, err := b.FollowShard(ctx, 0, journal.ShardPosition{})
	if err != nil {
		t.Fatal(err)
	}
	defer follower.Close()
	if err := a.Confirm(ctx, 0); err != nil { // ships the lazy value
		t.Fatal(err)
	}
	settle(t, a)
	log.follow(t, b)
	same(t, a, b)
	if commits, err := follower.Next(ctx); err != nil || len(commits) == 0 || commits[0].Position.Offset != 1 {
		t.Fatalf("a follower of the copy got %v, %v", commits, err)
	}
	var notMine *journal.NotMineError
	if _, err := b.Append(ctx, journal.Batch{}); errors.As(err, &notMine) || err == nil {
		t.Fatalf("an empty batch is answered with %v", err)
	}
	one := journal.Batch{Appends: []journal.Append{{Log: room.In("history", "0"), Records: []journal.Record{{Data: []byte("x")}}}}}
	if _, err := b.Append(ctx, one); !errors.As(err, &notMine) || !journal.Retryable(err) {
		t.Fatalf("a copy that follows answers an append with %v", err)
	}
	if err := b.Confirm(ctx, 0); !errors.As(err, &notMine) {
		t.Fatalf("a copy that follows confirms with %v", err)
	}

	if err := a.Exclusively(ctx, func() error { a.Yield("b"); return nil }); err != nil {
		t.Fatal(err)
	}
	takeOver(t, b, 7)
	if place, err := b.Place(ctx, 0); err != nil || place.Term < 7 {
		t.Fatalf("the term after a takeover is %d, %v", place.Term, err)
	}
	if ticket, err := b.DropPartition(ctx, room); err != nil || ticket.Wait(ctx) != nil {
		t.Fatal(err)
	}
	populate(t, b)
	if err := b.Confirm(ctx, 0); err != nil {
		t.Fatal(err)
	}
	settle(t, b)
	log.follow(t, a)
	same(t, b, a)
	if _, err := a.Append(ctx, one); !errors.As(err, &notMine) || notMine.Node != "b" {
		t.Fatalf("the old leader answers an append with %v", err)
	}
}

// settle waits for removals.
func settle(t testing.TB, e journal.Engine) {
	t.Helper()
	for e.Stats().Removals > 0 {
		if err := e.Confirm(ctx, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCopyGoesOnWithARemoval: a copy that takes over in the middle of a drop
// finishes it.
func TestCopyGoesOnWithARemoval(t *testing.T) {
	t.Parallel()
	log := &sharedLog{}
	a, b := log.open(t, vfs.NewMem()), log.open(t, vfs.NewMem())
	takeOver(t, a, 1)
	populate(t, a)
	settle(t, a)
	// Apply the groups up to the drop, without its removal.
	for n, g := range log.all() {
		if err := b.Exclusively(ctx, func() error { return b.Apply(g, log.place(n+1)) }); err != nil {
			t.Fatal(err)
		}
		if g.Count > 0 && g.First+g.Count-1 == 7 {
			break
		}
	}
	if b.Stats().Removals != 1 {
		t.Fatalf("the copy knows of %d removals", b.Stats().Removals)
	}
	heads, err := b.Head(ctx, room.In("history", "2"))
	if err != nil || heads.Durable.Exists() || heads.Ordered.Exists() {
		t.Fatalf("the dropped log is at %+v, %v", heads, err)
	}
	takeOver(t, b, 2)
	settle(t, b)
	got, errs := readAll(b)
	if errs != nil || got.Logs["2"] != nil || len(got.Index) != 4 {
		t.Fatalf("after the takeover: %v, %v", got, errs)
	}
}

// TestCopyAfterACrash: what a copy loses in a crash is applied again.
func TestCopyAfterACrash(t *testing.T) {
	t.Parallel()
	log := &sharedLog{}
	mem := vfs.NewCrashableMem()
	a, b := log.open(t, mem), log.open(t, vfs.NewMem())
	takeOver(t, a, 1)
	populate(t, a)
	if err := a.Confirm(ctx, 0); err != nil {
		t.Fatal(err)
	}
	settle(t, a)
	again := log.open(t, mem.CrashClone(vfs.CrashCloneCfg{}))
	if at(t, again).Seq == at(t, a).Seq {
		t.Fatal("the crash took nothing: this test shows nothing")
	}
	log.follow(t, again)
	log.follow(t, b)
	same(t, b, again)
	place := at(t, again)
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if place.Seq != uint64(len(log.all())) {
		t.Fatalf("the copy is at %d of %d", place.Seq, len(log.all()))
	}
}

// TestCopyThatEndsBeforeItsMark: where a store that is not a copy refuses to open,
// because durable data is lost, a copy reads it from its log again, in the same epoch.
func TestCopyThatEndsBeforeItsMark(t *testing.T) {
	t.Parallel()
	log := &sharedLog{}
	mem := vfs.NewCrashableMem()
	a, b := log.open(t, mem), log.open(t, vfs.NewMem())
	takeOver(t, a, 1)
	populate(t, a)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	old := []*vfs.MemFS{mem.CrashClone(vfs.CrashCloneCfg{}), mem.CrashClone(vfs.CrashCloneCfg{})}
	a = log.open(t, mem)
	takeOver(t, a, 2)
	commit(t, a, journal.Batch{Values: []journal.ValueWrite{{Key: journal.ValueKey{Partition: room, Name: "last"}, Data: []byte("1")}}})
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for _, fs := range old {
		if err := fs.Remove("/data/SEAL"); err != nil {
			t.Fatal(err)
		}
		if err := vfs.CopyAcrossFS(mem, "/data/MARK", fs, "/data/MARK"); err != nil {
			t.Fatal(err)
		}
	}
	if alone, err := disk.Open("/data", disk.Options{FS: old[0]}); !errors.Is(err, journal.ErrDamaged) {
		t.Fatalf("a store alone opens: %v, %v", alone, err)
	}
	again := log.open(t, old[1])
	log.follow(t, again)
	log.follow(t, b)
	same(t, b, again)
}

// TestCopyLosesTheLead: a group that is lost ends failed, the groups after it end
// aborted, and none of them is visible.
func TestCopyLosesTheLead(t *testing.T) {
	t.Parallel()
	log := &sharedLog{}
	a := log.open(t, vfs.NewMem())
	takeOver(t, a, 1)
	write := func(text string) (*journal.Ticket, error) {
		return a.Append(ctx, journal.Batch{Appends: []journal.Append{{Log: room.In("history", "0"), Records: []journal.Record{{Data: []byte(text)}}}}})
	}
	if ticket, err := write("1"); err != nil || ticket.Wait(ctx) != nil {
		t.Fatal(err)
	}
	log.mu.Lock()
	log.refuse = &journal.NotMineError{Shard: 0, Node: "b"}
	first, err := write("2")
	log.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	var outcome *journal.OutcomeError
	if err := first.Wait(ctx); !errors.As(err, &outcome) || outcome.Outcome != journal.Failed {
		t.Fatalf("the lost group ends with %v", err)
	}
	var notMine *journal.NotMineError
	if _, err := write("3"); !errors.As(err, &notMine) || notMine.Node != "b" {
		t.Fatalf("after it an append is answered with %v", err)
	}
	if h := a.Health(); h.State != journal.Waiting {
		t.Fatalf("health is %v", h)
	}
	takeOver(t, a, 5)
	if ticket, err := write("2 again"); err != nil || ticket.Wait(ctx) != nil || ticket.Offset() != 2 {
		t.Fatal(err)
	}
	got, _ := readAll(a)
	if diff := cmp.Diff([]string{"1@1 1", "2@2 2 again"}, got.Logs["0"]); diff != "" {
		t.Fatal(diff)
	}
}

// TestCopyRefusesForeignGroups: bytes that no engine of this shard wrote change
// nothing.
func TestCopyRefusesForeignGroups(t *testing.T) {
	t.Parallel()
	log := &sharedLog{}
	a := log.open(t, vfs.NewMem())
	takeOver(t, a, 1)
	populate(t, a)
	good := log.all()[0]
	for name, change := range map[string]func(g *disk.Group){
		"counts that lie":     func(g *disk.Group) { g.Batch[8]++ },
		"numbered":            func(g *disk.Group) { g.Batch[0] = 1 },
		"cut":                 func(g *disk.Group) { g.Batch = g.Batch[:len(g.Batch)-1] },
		"short":               func(g *disk.Group) { g.Batch = g.Batch[:5] },
		"unknown kind of op":  func(g *disk.Group) { g.Batch[12] = 3 },
		"unknown kind of key": func(g *disk.Group) { g.Batch[14] = '?' },
		"another offset":      func(g *disk.Group) { g.First = 2 },
		"more batches":        func(g *disk.Group) { g.Count++ },
		"an epoch of its own": func(g *disk.Group) {
			g.Batch = append(g.Batch, 1, 2, 'm', 'e', 1, 'x')
			g.Batch[8]++
		},
		"all records": func(g *disk.Group) {
			g.Batch = append(g.Batch, 15, 1, 'r', 1, 's')
			g.Batch[8]++
		},
	} {
		b := log.open(t, vfs.NewMem())
		g := good
		g.Batch = bytes.Clone(g.Batch)
		change(&g)
		err := b.Exclusively(ctx, func() error { return b.Apply(g, log.place(1)) })
		if !errors.Is(err, journal.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
		if at(t, b).Seq != 0 || b.Offset() != 0 || b.Health().State == journal.Broken {
			t.Errorf("%s: the copy is at %v, its health %v", name, at(t, b), b.Health())
		}
	}
	wrong, err := disk.OpenCopy("/data", disk.Options{FS: vfs.NewMem()}, disk.CopyOptions{Shard: 1, Shards: 2, Ship: log.ship})
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.Close() //nolint:errcheck // only looked at
	if journal.ShardOf(room, 2) == 1 {
		t.Fatal("choose another partition")
	}
	if err := wrong.Exclusively(ctx, func() error { return wrong.Apply(good, log.place(1)) }); !errors.Is(err, journal.ErrInvalid) {
		t.Errorf("a group of another shard: got %v", err)
	}
}

// FuzzCopyApply: any input is applied as a group or refused, and the store stays
// intact.
func FuzzCopyApply(f *testing.F) {
	log := &sharedLog{}
	a := log.open(f, vfs.NewMem())
	takeOver(f, a, 1)
	populate(f, a)
	settle(f, a)
	for _, g := range log.all() {
		f.Add(g.Batch, g.First, g.Count)
	}
	f.Fuzz(func(t *testing.T, batch []byte, first, count uint64) {
		b := log.open(t, vfs.NewMem())
		if first > 1 { // reach the offset
			first = 1
		}
		err := b.Exclusively(context.Background(), func() error {
			return b.Apply(disk.Group{First: first, Count: count, Batch: batch}, log.place(1))
		})
		if b.Health().State == journal.Broken {
			t.Fatal(fmt.Errorf("the store is dead after %w", err))
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCopyRebuiltDuringARemoval: the claims of a dropped log are released in every
// copy, even if the copy that removes the log rebuilt its index without them.
func TestCopyRebuiltDuringARemoval(t *testing.T) {
	t.Parallel()
	whole := &sharedLog{}
	a := whole.open(t, vfs.NewMem())
	takeOver(t, a, 1)
	populate(t, a)
	settle(t, a)
	log := &sharedLog{} // the groups up to the drop, without its removal
	for _, g := range whole.all() {
		log.groups = append(log.groups, g)
		if g.Count > 0 && g.First+g.Count-1 == 7 {
			break
		}
	}
	b, c := log.open(t, vfs.NewMem()), log.open(t, vfs.NewMem())
	log.follow(t, b)
	log.follow(t, c)
	if err := b.RebuildIndex(ctx); err != nil {
		t.Fatal(err)
	}
	takeOver(t, b, 2)
	settle(t, b)
	log.follow(t, c)
	same(t, b, c)
	if got, _ := readAll(c); len(got.Claims) != 4 {
		t.Fatalf("claims %v are held", got.Claims)
	}
}
