package disk_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
)

// TestACopyForgetsWhatOthersMayHaveWritten: a copy whose sieves lack a claim and a
// log, and that then applies a group that creates them, finds them when it leads
// again.
func TestACopyForgetsWhatOthersMayHaveWritten(t *testing.T) {
	t.Parallel()
	shared := &sharedLog{}
	a, b := shared.open(t, vfs.NewMem()), shared.open(t, vfs.NewMem())
	take := func(log, claim string) journal.Batch {
		return journal.Batch{Appends: []journal.Append{{Log: room.In("history", log), Records: []journal.Record{
			{Data: []byte("x"), Take: []journal.Take{{Name: claim}}},
		}}}}
	}
	write := func(e journal.Engine, batch journal.Batch) {
		t.Helper()
		ticket, err := e.Append(ctx, batch)
		if err != nil {
			t.Fatal(err)
		}
		if err := ticket.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	takeOver(t, a, 1)
	for i := 0; !a.Sifted(); i++ {
		write(a, take(fmt.Sprint("own ", i), fmt.Sprint("own ", i)))
	}
	if err := a.Exclusively(ctx, func() error { a.Yield("b"); return nil }); err != nil {
		t.Fatal(err)
	}
	shared.follow(t, b)
	takeOver(t, b, 2)
	for i := range 8 {
		write(b, take(fmt.Sprint("theirs ", i), fmt.Sprint("theirs ", i)))
	}
	shared.follow(t, a)
	takeOver(t, a, 3)
	for i := range 8 {
		name := fmt.Sprint("theirs ", i)
		var conflict *journal.ConflictError
		if _, err := a.Append(ctx, take("new", name)); !errors.As(err, &conflict) || conflict.Kind != journal.ClaimConflict {
			t.Fatalf("a claim that another process took is answered with %v", err)
		}
		batch := take(name, "free "+name)
		batch.Appends[0].Expect = journal.Exactly(0)
		if _, err := a.Append(ctx, batch); !errors.As(err, &conflict) || conflict.Kind != journal.SequenceConflict {
			t.Fatalf("a log that another process made is answered with %v", err)
		}
	}
}
