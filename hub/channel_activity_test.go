package hub_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
)

// listedUnder returns the last parts of the index keys with a prefix, in order.
func (r *rig) listedUnder(prefix string) (ids []string) {
	r.t.Helper()
	for entry, err := range journal.IndexAll(ctx, r.stored, journal.ScanOptions{Prefix: []byte(prefix)}) {
		if err != nil {
			r.t.Fatal(err)
		}
		ids = append(ids, string(entry.Key[strings.LastIndexByte(string(entry.Key), '/')+1:]))
	}
	return ids
}

func TestOpenAndActive(t *testing.T) {
	t.Parallel()
	runs(t, "open channels are listed without those that ended, and by their last activity", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		one, two := r.open("board", a, b), r.open("conversation", a, b)
		home := r.home("hpd", "s")
		three := r.openWith("board", in(home), a, b)
		own := strings.TrimPrefix(three, home.ID+".")
		r.pass(2 * time.Minute)
		for range 3 {
			r.say(a, two, "x")
		}
		r.pass(2 * time.Minute)
		r.restart()
		r.post(a, one, "board.note", `{}`)
		if got := r.listedUnder("active/"); !slices.Equal(got, []string{own, two, one}) {
			t.Errorf("by activity %v, want %v", got, []string{own, two, one})
		}
		if got := r.listAll(hub.ListOptions{Open: true}); !slices.Equal(got, []string{one, two, three}) {
			t.Errorf("open %v", got)
		}
		r.end(one, "done")
		r.end(three, "done")
		if got := r.listAll(hub.ListOptions{Open: true}); !slices.Equal(got, []string{two}) {
			t.Errorf("open after two ends %v", got)
		}
		if got := r.listedUnder("active/"); !slices.Equal(got, []string{two}) {
			t.Errorf("active after two ends %v", got)
		}
		if got := r.listedUnder("open/"); !slices.Equal(got, []string{two}) {
			t.Errorf("the list of open ones holds %v", got)
		}
	})
}
