package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
)

// catchUp applies the groups that a copy does not have, in as few commits as possible.
func (l *sharedLog) catchUp(c *disk.Copy) error {
	return c.Exclusively(ctx, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for n := int(c.At().Seq) + 1; n <= len(l.groups); n++ {
			if err := c.Gather(l.groups[n-1], l.place(n)); err != nil {
				return errors.Join(err, c.Flush())
			}
		}
		return c.Flush()
	})
}

// TestCopyCatchesUp: groups that are written together, including drops and removals,
// have the same result as groups written one by one; a follower of the copy gets each
// commit with its hint.
func TestCopyCatchesUp(t *testing.T) {
	t.Parallel()
	log := &sharedLog{}
	a, b, behind := log.open(t, vfs.NewMem()), log.open(t, vfs.NewMem()), log.open(t, vfs.NewMem())
	takeOver(t, a, 1)
	follower, err := behind.FollowShard(ctx, 0, journal.ShardPosition{})
	if err != nil {
		t.Fatal(err)
	}
	defer follower.Close()
	const hinted = 5
	for i := range hinted {
		one := journal.Batch{Hint: fmt.Append(nil, i), Appends: []journal.Append{{Log: room.In("history", "0"), Records: []journal.Record{{Data: []byte("x")}}}}}
		if ticket, err := a.Append(ctx, one); err != nil || ticket.Wait(ctx) != nil {
			t.Fatal(err)
		}
	}
	if behind.Busy() {
		t.Fatal("this test shows nothing: the copy is busy already")
	}
	began := time.Now()
	if err := log.catchUp(behind); err != nil {
		t.Fatal(err)
	}
	if !behind.Busy() && time.Since(began) < 50*time.Millisecond {
		t.Error("compactions run while the copy catches up")
	}
	for got := 0; got < hinted; {
		commits, err := follower.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range commits {
			if want := fmt.Sprint(got); string(c.Hint) != want || c.Position.Offset != uint64(got+1) {
				t.Fatalf("commit %d has hint %q, want %q", c.Position.Offset, c.Hint, want)
			}
			got++
		}
	}
	populate(t, a)
	if ticket, err := a.DropPartition(ctx, room); err != nil || ticket.Wait(ctx) != nil {
		t.Fatal(err)
	}
	populate(t, a)
	if err := a.Confirm(ctx, 0); err != nil {
		t.Fatal(err)
	}
	settle(t, a)
	log.follow(t, b)
	if err := log.catchUp(behind); err != nil {
		t.Fatal(err)
	}
	same(t, a, b)
	same(t, a, behind)
	if got, want := at(t, behind), at(t, a); got != want {
		t.Errorf("the copy is at %+v, want %+v", got, want)
	}
}

// TestCopyCatchesUpToABadGroup: the groups before an invalid group are written.
func TestCopyCatchesUpToABadGroup(t *testing.T) {
	t.Parallel()
	log := &sharedLog{}
	a, b := log.open(t, vfs.NewMem()), log.open(t, vfs.NewMem())
	takeOver(t, a, 1)
	populate(t, a)
	if err := a.Confirm(ctx, 0); err != nil { // ships the lazy value
		t.Fatal(err)
	}
	settle(t, a)
	all := log.all()
	n := 2
	good := all[n]
	bad := disk.Group{First: good.First, Count: good.Count, Hints: good.Hints, Batch: bytes.Clone(good.Batch)}
	bad.Batch[8]++
	all[n] = bad
	if err := log.catchUp(b); !errors.Is(err, journal.ErrInvalid) {
		t.Fatalf("a bad group is answered with %v", err)
	}
	if got := at(t, b); got != log.place(n) || b.Offset() != good.First-1 || b.Health().State == journal.Broken {
		t.Errorf("the copy is at %+v, offset %d, health %v", got, b.Offset(), b.Health())
	}
	all[n] = good
	if err := log.catchUp(b); err != nil {
		t.Fatal(err)
	}
	same(t, a, b)
}
