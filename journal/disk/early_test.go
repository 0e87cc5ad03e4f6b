package disk_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
)

// TestReadsOfACopySeeWhatIsDurable: the tickets of a group end before it is applied;
// a caller that waited for one still reads its batch, with every kind of read.
func TestReadsOfACopySeeWhatIsDurable(t *testing.T) {
	t.Parallel()
	c := new(sharedLog).open(t, vfs.NewMem())
	takeOver(t, c, 1)
	home := journal.PartitionName{Tenant: "acme", Partition: "home"}
	var writers sync.WaitGroup
	for w := range 16 {
		log, key := home.In("log", fmt.Sprint(w)), journal.ValueKey{Partition: home, Name: fmt.Sprint(w)}
		writers.Go(func() {
			for i := range scale.N(50) {
				seq, claim := uint64(i+1), fmt.Sprint("claim", w, "-", i)
				ticket, err := c.Append(ctx, journal.Batch{
					Appends: []journal.Append{{Log: log, Records: []journal.Record{{Data: []byte("text"), Take: []journal.Take{{Name: claim}}}}}},
					Values:  []journal.ValueWrite{{Key: key, Data: []byte("value")}},
				})
				if err == nil {
					err = ticket.Wait(ctx)
				}
				if err != nil {
					t.Error(err)
					return
				}
				if place, err := c.Place(ctx, 0); err != nil || place.Durable < ticket.Offset() {
					t.Errorf("the store ends at %+v, %v; offset %d is durable", place, err, ticket.Offset())
				}
				if heads, err := c.Head(ctx, log); err != nil || heads.Durable.Seq != seq || heads.Pending != nil {
					t.Errorf("the log ends at %+v, %v; record %d is durable", heads, err, seq)
				}
				if page, err := c.Read(ctx, log, journal.ReadOptions{}); err != nil || page.Head.Seq != seq {
					t.Errorf("a read ends at %+v, %v; record %d is durable", page.Head, err, seq)
				}
				if value, err := c.Value(ctx, key); err != nil || value.Durable.Version != ticket.Offset() {
					t.Errorf("the value is %+v, %v; offset %d is durable", value, err, ticket.Offset())
				}
				if state, err := c.Claim(ctx, 0, claim); err != nil || state.Durable == nil {
					t.Errorf("the claim is %+v, %v; it is durable", state, err)
				}
				if t.Failed() {
					return
				}
			}
		})
	}
	writers.Wait()
}

// TestACopyIsReadWhileItsNextGroupIsShipped: a durable group is applied while the next
// one is being shipped, and is visible even if the log does not answer; if the next
// group is lost, the durable one stays.
func TestACopyIsReadWhileItsNextGroupIsShipped(t *testing.T) {
	t.Parallel()
	log := &sharedLog{}
	arrived, answer := make(chan struct{}), make(chan error)
	c, err := disk.OpenCopy("/data", disk.Options{FS: vfs.NewMem()}, disk.CopyOptions{Shards: 1, GroupBytes: 1 << 20, Ship: func(g disk.Group) (disk.Place, journal.Outcome, error) {
		arrived <- struct{}{}
		if err := <-answer; err != nil {
			return disk.Place{}, journal.Failed, err
		}
		return log.ship(g)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // in memory
	takeOver(t, c, 1)
	home := journal.PartitionName{Tenant: "acme", Partition: "home"}.In("log", "1")
	order := func() *journal.Ticket {
		ticket, err := c.Append(ctx, journal.Batch{Appends: []journal.Append{{Log: home, Records: []journal.Record{{Data: []byte("x")}}}}})
		if err != nil {
			t.Error(err)
		}
		return ticket
	}
	first := order()
	<-arrived
	second := order() // gathered when the first one becomes durable
	answer <- nil
	<-arrived // the second one is in flight
	if err := first.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if page, err := c.Read(ctx, home, journal.ReadOptions{}); err != nil || page.Head.Seq != 1 {
		t.Errorf("a read ends at %+v, %v; record 1 is durable", page.Head, err)
	}
	if stats := c.Stats(); stats.Batches != 1 || stats.Groups != 1 {
		t.Errorf("counted %d batches in %d groups, 1 is durable", stats.Batches, stats.Groups)
	}
	third := order()
	answer <- errors.New("the log has another's")
	if err := second.Wait(ctx); err == nil || second.Outcome() != journal.Failed {
		t.Errorf("the second one ended %v, %v", second.Outcome(), err)
	}
	if err := third.Wait(ctx); err == nil || third.Outcome() != journal.Aborted {
		t.Errorf("the third one ended %v, %v", third.Outcome(), err)
	}
	if got := at(t, c); got != log.place(1) || c.Offset() != 1 {
		t.Errorf("the copy is at %+v, offset %d", got, c.Offset())
	}
}
