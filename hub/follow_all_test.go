package hub_test

import (
	"errors"
	"testing"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
)

func TestReadingFromWhereThereIsNothing(t *testing.T) {
	t.Parallel()
	runs(t, "a read that does not wait is told of a gap", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		r.open("conversation", a, b)
		r.settle()
		now, err := r.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name   string
			after  journal.ShardPosition
			reason journal.GapReason
		}{
			{"another epoch", journal.ShardPosition{Epoch: now.Epoch + 1, Offset: now.Offset - 1}, journal.EpochChanged},
			{"another epoch, further than this one", journal.ShardPosition{Epoch: now.Epoch + 1, Offset: now.Offset + 9}, journal.EpochChanged},
			{"further than this epoch", journal.ShardPosition{Epoch: now.Epoch, Offset: now.Offset + 1}, journal.NeverWritten},
		} {
			f, err := r.FollowAll(ctx, hub.WideOptions{After: hub.WidePosition{ShardPosition: c.after, Others: now.Others}})
			if err != nil {
				t.Fatal(err)
			}
			_, ok, err := f.NextUntil(ctx, now)
			f.Close()
			var gap *hub.WideGap
			if ok || !errors.As(err, &gap) || fault.CodeOf(err) != fault.Gap || gap.Head != now || gap.Reason != c.reason.String() {
				t.Errorf("%s: %v %v", c.name, ok, err)
			}
		}
	})
	runs(t, "the end is no gap", hub.Options{}, func(t *testing.T, r *rig) {
		now, err := r.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, after := range []hub.WidePosition{{}, now} {
			f, err := r.FollowAll(ctx, hub.WideOptions{After: after})
			if err != nil {
				t.Fatal(err)
			}
			if ev, ok, err := f.NextUntil(ctx, now); ok || err != nil {
				t.Errorf("after %v: %v %v %v", after, ev, ok, err)
			}
			f.Close()
		}
	})
}

// others returns a position in every shard but the first.
func others(r *rig) string {
	now, err := r.Now(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	return now.Others
}
