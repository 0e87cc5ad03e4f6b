package disk_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
)

// TestReadsOfACopySeeWhatIsDurable: the tickets of a group end before it is applied,
// and whoever waited for one reads its batch all the same, in every way.
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
