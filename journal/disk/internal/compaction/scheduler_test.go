package compaction

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// fakeStore has waiting compactions, and allows some of them at once.
type fakeStore struct {
	waiting, allowed int
	granted          []pebble.CompactionGrantHandle
}

func (f *fakeStore) GetAllowedWithoutPermission() int { return f.allowed }

func (f *fakeStore) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	return f.waiting > 0, pebble.WaitingCompaction{}
}

func (f *fakeStore) Schedule(g pebble.CompactionGrantHandle) bool {
	f.waiting--
	f.granted = append(f.granted, g)
	return true
}

func TestCompactionsWaitForAQuietMoment(t *testing.T) {
	t.Parallel()
	var busy, urgent bool
	c := New(func() bool { return busy }, func() bool { return urgent })
	store := &fakeStore{waiting: 3, allowed: 1}
	c.Register(1, store)
	try := func() bool {
		ok, _ := c.TrySchedule()
		return ok
	}
	if try() {
		t.Error("a compaction began before the store was open")
	}
	c.offer()
	c.Begin()
	busy = true
	if c.offer(); try() || len(store.granted) > 0 {
		t.Error("a compaction began while batches arrived")
	}
	urgent = true
	if c.offer(); len(store.granted) != 1 {
		t.Errorf("%d compactions began when it could not wait, 1 is allowed at once", len(store.granted))
	}
	busy = false
	store.granted[0].Done()
	if len(store.granted) != 2 {
		t.Error("the end of one compaction did not begin the next")
	}
	// After damage no compaction begins.
	c.Halt()
	store.granted[1].Done()
	if c.offer(); try() || len(store.granted) != 2 {
		t.Error("a compaction began after damage was found")
	}
	c.Unregister()
}
