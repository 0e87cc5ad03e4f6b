package hub_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/repair"
)

// A power loss at any batch leaves the whole content or nothing of it.
func TestContentInACrash(t *testing.T) {
	t.Parallel()
	const pieces = 3
	for lost := range pieces + 1 { // the batch that is not durable; the last one ends the content
		runs(t, fmt.Sprintf("batch %d is lost", lost+1), byHand, func(t *testing.T, r *rig) {
			home := r.home("hpd", "s")
			whole := r.putContent(home, noise(9))
			piece := 0
			from := readFunc(func(p []byte) (int, error) {
				switch piece++; {
				case piece == lost+1:
					r.hold() // until the crash
				case piece > pieces:
					return 0, io.EOF
				}
				return copy(p, noise(contentPiece)), nil
			})
			answer := make(chan error, 1)
			go func() {
				if lost == pieces {
					// The end is in a batch of its own.
					from = endAfter(pieces, func() { r.hold() })
				}
				_, err := r.PutContent(ctx, home.ID, hub.ContentInfo{}, from)
				answer <- err
			}()
			r.settle()
			r.engine.Faults().Crash()
			if err := <-answer; !fault.Retryable(err) {
				t.Errorf("answered %v", err)
			}
			r.restart()
			if got := r.contents(home, false); !equalIDs(got, []string{whole.ID}) {
				t.Errorf("listed %v", got)
			}
			if n := r.logsOf("home/"+home.ID, "content"); n != 1 {
				t.Errorf("%d logs after opening", n)
			}
			if _, data := r.readContent(home, whole.ID); !bytes.Equal(data, noise(9)) {
				t.Error("what was complete is damaged")
			}
		})
	}
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// endAfter returns a reader of a number of pieces that calls last before it ends.
func endAfter(pieces int, last func()) readFunc {
	left := pieces * contentPiece
	return func(p []byte) (int, error) {
		if left == 0 {
			last()
			return 0, io.EOF
		}
		n := min(len(p), left)
		left -= n
		return n, nil
	}
}

func TestContentGivenUp(t *testing.T) {
	t.Parallel()
	runs(t, "what is not complete after an hour is removed, and cannot be completed", hub.Options{}, func(t *testing.T, r *rig) {
		home := r.home("hpd", "s")
		resume := make(chan struct{})
		sent := 0
		from := readFunc(func(p []byte) (int, error) {
			if sent++; sent == 2 {
				<-resume
			}
			if sent > 3 {
				return 0, io.EOF
			}
			return len(p), nil
		})
		answer := make(chan error, 1)
		go func() {
			_, err := r.PutContent(ctx, home.ID, hub.ContentInfo{}, from)
			answer <- err
		}()
		r.pass(59 * time.Minute)
		if n := r.logsOf("home/"+home.ID, "content"); n != 1 {
			t.Errorf("%d logs before the hour", n)
		}
		r.pass(7 * time.Minute)
		if n := r.logsOf("home/"+home.ID, "content"); n != 0 {
			t.Errorf("%d logs after the hour", n)
		}
		close(resume)
		if err := <-answer; fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("completed too late: %v", err)
		}
		r.settle()
		if n := r.logsOf("home/"+home.ID, "content"); n != 0 || len(r.contents(home, false)) != 0 {
			t.Errorf("%d logs are left", n)
		}
	})
}

// Backup, check, salvage and the removal of a partition need no special handling of
// content.
func TestContentIsData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newRigOn(t, byHand, 1, filepath.Join(dir, "data"))
	home := r.home("hpd", "s")
	data := noise(2*contentPiece + 3)
	info := r.putContent(home, data)
	holds := func(store string) {
		t.Helper()
		e, err := disk.Open(store, disk.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		h, err := hub.Open(ctx, e, r.opts)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		_, from, err := h.Content(ctx, home.ID, info.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(from); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v", filepath.Base(store), len(got), err)
		}
	}
	backup := filepath.Join(dir, "backup")
	if _, err := r.stored.Checkpoint(ctx, backup); err != nil {
		t.Fatal(err)
	}
	restored := filepath.Join(dir, "restored")
	if err := repair.Restore(backup, restored, disk.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	holds(restored)
	salvaged := filepath.Join(dir, "salvaged")
	if _, err := repair.Salvage(restored, salvaged, disk.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	holds(salvaged)
	report, err := repair.Check(salvaged, disk.Options{}, nil)
	if err != nil || !report.OK() {
		t.Errorf("check: %+v, %v", report, err)
	}
	if err := r.stored.RebuildIndex(ctx); err != nil {
		t.Fatal(err)
	}
	if got := r.contents(home, false); !equalIDs(got, []string{info.ID}) {
		t.Errorf("after a rebuild of the index: %v", got)
	}
	ticket, err := r.stored.DropPartition(context.Background(), journal.PartitionName{Tenant: "main", Partition: "home/" + home.ID}, "audit")
	if err == nil {
		err = ticket.Wait(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := r.contents(home, false); len(got) != 0 || r.logsOf("home/"+home.ID, "content") != 0 {
		t.Errorf("after its partition was dropped: %v", got)
	}
}

func TestContentGoesWithItsHome(t *testing.T) {
	t.Parallel()
	small := byHand
	small.Limits = hub.Limits{ContentHub: 2 * contentPiece}
	small.Adapters = withBoard.Adapters
	stored(t, "what is stored, and what is being stored", small, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		home, other := r.home("hpd", "s"), r.home("hpd", "other")
		r.putContent(home, noise(contentPiece))
		pieces, deleted := 0, false
		remove := func() {
			if deleted {
				return
			}
			deleted = true
			if err := r.DeleteHome(ctx, home.ID, nil); err != nil {
				t.Fatal(err)
			}
		}
		_, err := r.PutContent(ctx, home.ID, hub.ContentInfo{}, readFunc(func(p []byte) (int, error) {
			if pieces++; pieces == 1 {
				remove() // before its first piece is stored
			}
			return len(p), nil
		}))
		if fault.CodeOf(err) != fault.NotFound {
			t.Errorf("stored in a home that is gone: %v", err)
		}
		if n := r.logsOf("home/"+home.ID, "content"); n != 0 {
			t.Errorf("%d logs in a home that is gone", n)
		}
		r.putContent(other, noise(contentPiece+contentPiece/2)) // there is space again
		deleted, home = false, r.home("hpd", "s")
		_, err = r.Seed(ctx, hub.Opening{Creator: a.id, Type: "board", Home: home.ID}, notes(900, func(i int) error {
			if i == 800 { // after its first batch
				remove()
			}
			return nil
		}))
		if fault.CodeOf(err) != fault.NotFound {
			t.Errorf("seeded in a home that is gone: %v", err)
		}
		if n := r.logsOf("home/"+home.ID, "history"); n != 0 {
			t.Errorf("%d histories in a home that is gone", n)
		}
	})
}
