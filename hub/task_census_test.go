package hub_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/task"
)

// The counts of tasks that are updated with each change equal those of a hub that
// has just been opened and counts all tasks.
func TestOpenTasksAreCountedAsTheyChange(t *testing.T) {
	t.Parallel()
	runs(t, "random changes", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("a"), r.agent("b")
		random := rand.New(rand.NewPCG(1, 2))
		states := []task.State{task.Created, task.Running, task.Completed, task.Failed, task.Cancelled}
		var open []string
		for range 4 {
			open = append(open, r.open("discussion", a, b))
		}
		check := func(when string) {
			t.Helper()
			counted, err := r.CountOpenTasks(ctx)
			if err != nil {
				t.Fatal(err)
			}
			maps.DeleteFunc(counted, func(_ task.State, n int) bool { return n == 0 })
			listed := map[task.State]int{}
			all, _, err := r.Tasks(ctx, hub.TaskQuery{Limit: 10_000})
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range all {
				if !one.State.Terminal() {
					listed[one.State]++
				}
			}
			if !maps.Equal(counted, listed) {
				t.Fatalf("%s: counted %v, there are %v", when, counted, listed)
			}
		}
		for step := range 300 {
			id := fmt.Sprint("t", random.IntN(60))
			switch n := random.IntN(20); {
			case n == 0 && len(open) > 1:
				r.end(open[0], "done")
				open = open[1:]
			case n == 1 && len(open) > 1:
				if err := r.Delete(ctx, open[0], nil); err != nil {
					t.Fatal(err)
				}
				open = open[1:]
			case n < 10:
				one := task.Task{ID: id, Owner: a.id, State: states[random.IntN(2)]}
				if random.IntN(2) == 0 {
					one.Channel = open[random.IntN(len(open))]
				}
				_ = r.ObserveTask(ctx, one, nil, hub.MirrorOff) // an ended task does not change
			default:
				_ = r.UpdateTask(ctx, task.Update{ID: id, State: states[random.IntN(len(states))]}, nil, hub.MirrorOff) // the task may be unknown
			}
			if step%5 == 0 {
				r.settle()
				check(fmt.Sprint("after ", step))
			}
		}
		r.restart()
		check("after a restart")
	})
}
