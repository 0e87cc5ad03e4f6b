package hub_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/task"
)

// recordless is a store that accepts the claim of a task's id, but no task.
type recordless struct{ journal.Engine }

func (e recordless) Append(ctx context.Context, b journal.Batch) (*journal.Ticket, error) {
	for _, a := range b.Appends {
		if a.Log.Family == "task" {
			return nil, errors.New("not now")
		}
	}
	return e.Engine.Append(ctx, b)
}

func TestTaskIDs(t *testing.T) {
	t.Parallel()
	runs(t, "an id is given once in the whole hub, whoever is first", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		places := []string{"", r.open("conversation", a, b), r.open("conversation", b, a)}
		var wg sync.WaitGroup
		for i := range 9 {
			wg.Go(func() {
				err := r.ObserveTask(ctx, task.Task{ID: "one", Owner: a.id, Channel: places[i%3]}, nil, hub.MirrorOff)
				if err != nil && fault.CodeOf(err) != fault.Unavailable {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		list, _, err := r.Tasks(ctx, hub.TaskQuery{})
		if err != nil || len(list) != 1 {
			t.Errorf("%d tasks, %v", len(list), err)
		}
	})
	runs(t, "an id without a task is free after an hour, or in the place it was claimed for", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		one, two := r.open("conversation", a, b), r.open("conversation", a, b)
		r.Close()
		crashing, err := hub.Open(ctx, recordless{r.stored}, r.opts)
		if err != nil {
			t.Fatal(err)
		}
		observe := func(h *hub.Hub, id, channelID string) fault.Code {
			return fault.CodeOf(h.ObserveTask(ctx, task.Task{ID: id, Owner: a.id, Channel: channelID}, nil, hub.MirrorOff))
		}
		for _, id := range []string{"t1", "t2", "t3"} {
			if observe(crashing, id, one) == "" {
				t.Fatal("stored")
			}
		}
		crashing.Close()
		r.restart()
		if _, err := r.Task(ctx, "t1"); fault.ReasonOf(err) != fault.NoTask {
			t.Errorf("found %v", err)
		}
		if code := observe(r.Hub, "t1", two); code != fault.Unavailable {
			t.Errorf("elsewhere at once: %q", code)
		}
		if code := observe(r.Hub, "t1", one); code != "" {
			t.Errorf("in its place: %q", code)
		}
		r.pass(61 * time.Minute)
		if code := observe(r.Hub, "t2", two); code != "" {
			t.Errorf("after an hour: %q", code)
		}
		if got, err := r.Task(ctx, "t2"); err != nil || got.Channel != two {
			t.Errorf("%+v, %v", got, err)
		}
	})
	runs(t, "the ids of a deleted channel's tasks are free", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		if err := r.ObserveTask(ctx, task.Task{ID: "t", Owner: a.id, Channel: ch}, nil, hub.MirrorOff); err != nil {
			t.Fatal(err)
		}
		if err := r.Delete(ctx, ch, theOperator); err != nil {
			t.Fatal(err)
		}
		if err := r.ObserveTask(ctx, task.Task{ID: "t", Owner: b.id}, nil, hub.MirrorOff); err != nil {
			t.Error(err)
		}
	})
	runs(t, "the floor of ids is never lowered, and two hubs may raise it", hub.Options{ReserveIDs: time.Nanosecond}, func(t *testing.T, r *rig) {
		other, err := hub.Open(ctx, r.stored, r.opts)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		key := journal.ValueKey{Partition: journal.PartitionName{Tenant: "main", Partition: "directory"}, Name: "minter/floor"}
		var wg sync.WaitGroup
		for _, h := range []*hub.Hub{r.Hub, other} {
			wg.Go(func() {
				for range 20 {
					if err := h.Audit(ctx, "mine", nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		last := ""
		for range 20 {
			value, err := r.stored.Value(ctx, key)
			if err != nil || string(value.Durable.Data) < last {
				t.Errorf("the floor went from %x to %x, %v", last, value.Durable.Data, err)
			}
			last = string(value.Durable.Data)
		}
		wg.Wait()
	})
}
