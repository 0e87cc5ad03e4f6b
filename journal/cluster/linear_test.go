package cluster_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
)

// TestLinearizable records the operations of concurrent clients of three nodes while
// the nodes take the lead from each other, and checks with porcupine that an order
// explains them. Operations that store nothing return after Confirm.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	first := rand.Uint64()
	for i := range scale.N(3) {
		seed := first + uint64(i)
		history := fightForHistory(t, seed)
		if result := porcupine.CheckOperationsTimeout(linearModel.ToModel(), history, time.Minute); result != porcupine.Ok {
			t.Fatalf("seed %d: the history of %d operations is %v", seed, len(history), result)
		}
	}
}

// linearInput is an operation on a log, a claim or a value.
type linearInput struct {
	on     string
	read   bool
	free   bool // of a claim: release it
	who    int  // of a claim: the client, from 1
	expect uint64
}

type linearOutput struct {
	ok     bool
	number uint64 // sequence, holder or version: the new one, or the conflicting one
}

// byThing partitions a history by the object of its operations, because the objects
// are independent.
func byThing(on func(input any) string) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[string][]porcupine.Operation{}
		for _, op := range history {
			parts[on(op.Input)] = append(parts[on(op.Input)], op)
		}
		return slices.Collect(maps.Values(parts))
	}
}

var linearModel = porcupine.NondeterministicModel{
	Partition: byThing(func(input any) string { return input.(linearInput).on }),
	Init:      func() []any { return []any{uint64(0)} },
	Step: func(state, input, output any) []any {
		at, in, out := state.(uint64), input.(linearInput), output.(linearOutput)
		applies, next := at == in.expect, out.number
		switch {
		case in.read:
			applies, next = true, at
			if out.number != at {
				return nil
			}
		case in.on == "log":
			next = at + 1
		case in.on == "claim" && in.free:
			applies, next = true, at
			if at == uint64(in.who) {
				next = 0
			}
		case in.on == "claim":
			applies, next = at == 0, uint64(in.who)
		}
		switch {
		case out.ok != applies, !out.ok && out.number != at, out.ok && in.on == "log" && !in.read && out.number != next:
			return nil
		case out.ok:
			return []any{next}
		}
		return []any{at}
	},
	Equal: func(a, b any) bool { return a == b },
}

func fightForHistory(t *testing.T, seed uint64) (history []porcupine.Operation) {
	t.Helper()
	name := natsServers{}.create(t, 1, 1)
	var nodes []*node
	for _, n := range []string{"a", "b", "c"} {
		nodes = append(nodes, openNode(t, n, dial(t, name)))
	}
	nodes[0].take()
	var mu sync.Mutex
	var answered atomic.Int64
	const clients, each = 5, 25
	var wg sync.WaitGroup
	for c := range clients {
		rng := rand.New(rand.NewPCG(seed, uint64(c)))
		wg.Go(func() {
			known := map[string]uint64{}
			for done := 0; done < each; {
				n := nodes[rng.IntN(len(nodes))]
				on := []string{"log", "claim", "value"}[rng.IntN(3)]
				in := linearInput{on: on, read: rng.IntN(4) == 0, free: rng.IntN(2) == 0, who: c + 1, expect: known[on]}
				called := time.Now().UnixNano()
				out, err := n.perform(in)
				if err != nil { // it had no effect and has no result
					if !journal.Retryable(err) {
						t.Error(err)
						return
					}
					continue
				}
				done++
				answered.Add(1)
				known[on] = out.number
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: c, Input: in, Call: called, Output: out, Return: time.Now().UnixNano()})
				mu.Unlock()
			}
		})
	}
	rng := rand.New(rand.NewPCG(seed, 99))
	for next := int64(0); next < clients*each && !t.Failed(); next += int64(5 + rng.IntN(20)) {
		nodes[0].until("more answers", func() bool { return answered.Load() >= next || t.Failed() })
		nodes[rng.IntN(len(nodes))].take()
	}
	wg.Wait()
	verify(t, stored(t, name, nodes[0].Reached(0)))
	for _, n := range nodes {
		_ = n.Close()
	}
	return history
}

var linearValue = journal.ValueKey{Partition: history.Of(), Name: "linear"}

func linearBatch(in linearInput) journal.Batch {
	own := history.Of().In("linear", fmt.Sprint(in.who))
	switch {
	case in.on == "log":
		b := text("x")
		b.Appends[0].Expect = journal.Exactly(in.expect)
		return b
	case in.on == "value":
		return journal.Batch{Values: []journal.ValueWrite{{Key: linearValue, Expect: journal.Exactly(in.expect), Data: []byte("x")}}}
	case in.free:
		return journal.Batch{Appends: []journal.Append{{Log: own, Records: []journal.Record{{Release: []string{"linear"}}}}}}
	}
	return journal.Batch{Appends: []journal.Append{{Log: own, Records: []journal.Record{{Take: []journal.Take{{Name: "linear"}}}}}}}
}

// perform does one operation and waits until its result is final.
func (n *node) perform(in linearInput) (out linearOutput, err error) {
	if in.read {
		if out, err = n.read(in); err == nil {
			err = n.Confirm(n.ctx, 0)
		}
		return out, err
	}
	ticket, err := n.Append(n.ctx, linearBatch(in))
	var conflict *journal.ConflictError
	if errors.As(err, &conflict) {
		if err := conflict.LostTo.Wait(n.ctx); err != nil {
			return out, err
		}
		out.number = conflict.Actual
		if conflict.Kind == journal.ClaimConflict {
			_, _ = fmt.Sscan(conflict.Claim.Log.ID, &out.number)
		}
		return out, n.Confirm(n.ctx, 0)
	}
	if err != nil {
		return out, err
	}
	if err := ticket.Wait(n.ctx); err != nil {
		if ticket.Outcome() == journal.Unknown {
			n.t.Error("an operation ended unknown")
		}
		return out, err
	}
	out.ok = true
	switch in.on {
	case "log":
		out.number = ticket.Appended()[0].Last
	case "value":
		out.number = ticket.Offset()
	}
	return out, nil
}

func (n *node) read(in linearInput) (out linearOutput, err error) {
	out.ok = true
	switch in.on {
	case "log":
		heads, err := n.Head(n.ctx, history)
		out.number = heads.Durable.Seq
		return out, err
	case "value":
		state, err := n.Value(n.ctx, linearValue)
		out.number = state.Durable.Version
		return out, err
	}
	state, err := n.Claim(n.ctx, 0, "linear")
	if state.Durable != nil {
		_, _ = fmt.Sscan(state.Durable.Log.ID, &out.number)
	}
	return out, err
}
