package agh_test

import (
	"errors"
	"testing"

	"github.com/parley-hub/parley/dialect/agh"
)

// TestANodeThatMayNotAnswer checks that a node that may not answer neither accepts
// nor rejects a message of its broker, and accepts it when it may answer again.
func TestANodeThatMayNotAnswer(t *testing.T) {
	t.Parallel()
	a := newAir()
	runs(t, "over a broker", agh.Config{Broker: a}, func(r *rig) {
		r.join("dock", "crane", "crane.s01")
		tug, f := r.join("dock", "tug", "tug.s02"), &far{r, a, "far.s9"}
		before := f.send(obj{"work_id": "work_1"})
		r.Equal(tug.inbox(), []string{before})
		r.shut = errors.New("another node serves")
		f.send(obj{"id": before, "work_id": "work_1"}) // would be a duplicate
		id := f.send(obj{"work_id": "work_1"})
		r.Equal(len(a.published("receipt")), 0)
		r.Equal(tug.inbox(), []string{before})
		r.shut = nil
		f.send(obj{"id": id, "work_id": "work_1"})
		r.Equal(tug.inbox(), []string{before, id})
	})
}
