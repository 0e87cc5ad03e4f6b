package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
)

var errCutOff = errors.New("cut off")

// cutOff is a store that accepts only a number of further writes and removals.
type cutOff struct {
	journal.Engine
	left atomic.Int64
}

func (e *cutOff) take() error {
	if e.left.Add(-1) < 0 {
		return errCutOff
	}
	return nil
}

func (e *cutOff) Append(ctx context.Context, b journal.Batch) (*journal.Ticket, error) {
	if err := e.take(); err != nil {
		return nil, err
	}
	return e.Engine.Append(ctx, b)
}

func (e *cutOff) Drop(ctx context.Context, log journal.LogName) (*journal.Ticket, error) {
	if err := e.take(); err != nil {
		return nil, err
	}
	return e.Engine.Drop(ctx, log)
}

func (e *cutOff) DropPartition(ctx context.Context, p journal.PartitionName, keep ...string) (*journal.Ticket, error) {
	if err := e.take(); err != nil {
		return nil, err
	}
	return e.Engine.DropPartition(ctx, p, keep...)
}

// reopen replaces the rig's hub by one on a store that accepts a number of writes.
// restart opens the rig's own hub again.
func (r *rig) reopen(left int64) (*hub.Hub, *cutOff) {
	r.t.Helper()
	r.Close()
	store := &cutOff{Engine: r.stored}
	store.left.Store(1 << 30) // for the writes of opening
	h, err := hub.Open(ctx, store, r.opts)
	if err != nil {
		r.t.Fatal(err)
	}
	store.left.Store(left)
	return h, store
}

// wholeOrGone fails unless a channel that furnish made exists completely or not at
// all, and reports which.
func (r *rig) wholeOrGone(home hub.Home, id, name string) (there bool) {
	r.t.Helper()
	own := strings.TrimPrefix(id, home.ID+".")
	m, err := r.Channel(ctx, id)
	if hub.Deleted(err) {
		if n := r.index(own); n != 0 {
			r.t.Errorf("%d index entries name a deleted channel", n)
		}
		if _, err := r.Named(ctx, home.ID, "file", name); !hub.Deleted(err) {
			r.t.Errorf("its name leads to something: %v", err)
		}
		return false
	}
	if err != nil {
		r.t.Fatal(err)
	}
	if got := r.types(id); !slices.Equal(got, []string{"file.all", "file.note"}) {
		r.t.Errorf("half deleted, it holds %v", got)
	}
	if found, err := r.Named(ctx, home.ID, "file", name); err != nil || found != id {
		r.t.Errorf("its name leads to %q, %v", found, err)
	}
	list, _, err := r.Tasks(ctx, hub.TaskQuery{Channel: id})
	if err != nil || len(list) != 3 {
		r.t.Errorf("%d tasks of a channel that is there, %v", len(list), err)
	}
	if m.State != channel.Active && m.CloseReason != "deleted" {
		r.t.Errorf("it is %v because of %q", m.State, m.CloseReason)
	}
	return true
}

// Wherever a deletion is interrupted, the next hub has the whole channel or nothing
// of it, and finishes a removal that has begun.
func TestDeletionsCutOff(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(h *hub.Hub, home hub.Home, id string) error{
		"a channel": func(h *hub.Hub, _ hub.Home, id string) error { return h.Delete(ctx, id, theOperator) },
		"a home":    func(h *hub.Hub, home hub.Home, _ string) error { return h.DeleteHome(ctx, home.ID, theOperator) },
	} {
		stored(t, name, withFile, func(t *testing.T, r *rig) {
			a, b := r.agent("alice"), r.agent("bob")
			kept, gone := 0, 0
			for left := int64(0); ; left++ {
				home := r.home("hpd", fmt.Sprint("s", left))
				one, two := r.furnishFor(fmt.Sprint(left), home, a, b)
				crashing, _ := r.reopen(left)
				err := remove(crashing, home, one)
				crashing.Close()
				r.restart()
				if there := r.wholeOrGone(home, one, fmt.Sprint(left, "one")); there {
					kept++
				} else {
					gone++
				}
				if name == "a channel" && !r.wholeOrGone(home, two, fmt.Sprint(left, "two")) {
					t.Error("its neighbour went with it")
				}
				if n := r.index("due/drop"); n != 0 {
					t.Errorf("after %d writes %d deletions are left", left, n)
				}
				if err == nil {
					break
				}
				if !errors.Is(err, errCutOff) {
					t.Fatal(err)
				}
			}
			if kept == 0 || gone < 3 {
				t.Errorf("it was there %d times and gone %d times: not cut off at each write", kept, gone)
			}
		})
	}
	runs(t, "what could not be removed is removed by the sweep", withFile, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home, other := r.home("hpd", "s"), r.home("hpd", "other")
		one, _ := r.furnish(home, a, b)
		r.openWith("file", in(other), a, b)
		h, store := r.reopen(1 << 30)
		defer h.Close()
		if _, err := h.CloseChannel(ctx, one, "deleted"); err != nil {
			t.Fatal(err)
		}
		store.left.Store(3) // the audit, the record of the deletion, and one removal
		if err := h.Delete(ctx, one, theOperator); !errors.Is(err, errCutOff) {
			t.Fatalf("deleted: %v", err)
		}
		store.left.Store(1)
		if err := h.DeleteHome(ctx, other.ID, theOperator); !errors.Is(err, errCutOff) {
			t.Fatalf("deleted: %v", err)
		}
		if n := r.index("due/drop"); n != 2 {
			t.Fatalf("%d deletions are begun", n)
		}
		store.left.Store(1 << 30)
		r.pass(2 * time.Minute)
		if n := r.index("due/drop"); n != 0 {
			t.Errorf("%d deletions are left", n)
		}
		if families, _ := r.kept(home); len(families) != 7 {
			t.Errorf("the home holds %v", families)
		}
		if families, _ := r.kept(other); !slices.Equal(families, []string{"audit"}) {
			t.Errorf("the other home holds %v", families)
		}
	})
}
