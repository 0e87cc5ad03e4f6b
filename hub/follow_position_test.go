package hub_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

func TestPositionsNameEveryShard(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 8} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			r := newRigOn(t, byHand, shards, "")
			r.agent("alice")
			now, err := r.Now(ctx)
			if err != nil {
				t.Fatal(err)
			}
			places := strings.Split(now.String(), ",")
			if len(places) != shards || slices.ContainsFunc(places, func(p string) bool { return strings.Count(p, ".") != 2 }) {
				t.Errorf("%d shards are at %s", shards, now)
			}
			if got, err := hub.ParseWidePosition(now.String()); err != nil || got != now {
				t.Errorf("%s reads back as %s, %v", now, got, err)
			}
			f, err := r.FollowAll(ctx, hub.WideOptions{After: now})
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
			more, err := hub.ParseWidePosition(now.String() + ",1.1.0")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.FollowAll(ctx, hub.WideOptions{After: more}); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("a position with one shard too many: %v", err)
			}
		})
	}
	for _, text := range []string{"", "1", "1.2", "1.2.3.4", "1.2.-1", "01.2.3", "1.2.3,", ",1.2.3", "1.2.3,,1.2.3", "1.2.3 "} {
		if p, err := hub.ParseWidePosition(text); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q reads as %+v, %v", text, p, err)
		}
	}
}
