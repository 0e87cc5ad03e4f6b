package hub_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// Lists cost their reader's share of limits.lists, and all lists no more than the
// whole; the debt is paid off with time.
func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	runs(t, "shares", hub.Options{Limits: hub.Limits{Lists: 4 * mib}}, func(t *testing.T, r *rig) {
		refused := func(who, fragment string) {
			t.Helper()
			err := r.MayList(who)
			if fault.CodeOf(err) != fault.RateLimited || !strings.Contains(err.Error(), fragment) || !strings.Contains(err.Error(), "limits.lists") {
				t.Errorf("%s: %v", who, err)
			}
		}
		allowed := func(who string) {
			t.Helper()
			if err := r.MayList(who); err != nil {
				t.Errorf("%s: %v", who, err)
			}
		}
		allowed("a")
		r.Listed("a", 3*mib)
		refused("a", "your lists have more than 1048576 bytes a second")
		allowed("b")
		r.Listed("b", mib)
		allowed("b") // its share exactly
		r.Listed("c", mib)
		refused("d", "all lists together have more than 4194304 bytes a second")
		r.pass(500 * time.Millisecond)
		allowed("d")
		refused("a", "wait 1.5s")
		r.pass(1500 * time.Millisecond)
		allowed("a")
		for range 3 * mib / 4096 {
			r.Listed("e", 0)
		}
		refused("e", "your lists")
	})
}
