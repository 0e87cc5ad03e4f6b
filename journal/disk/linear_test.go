package disk_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/journaltest"
)

// TestLinearizable records the operations of concurrent clients across crashes and
// restarts, and checks with porcupine that an order explains them.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	first := rand.Uint64()
	for i := range scale.N(30) {
		seed := first + uint64(i)
		h := recordHistory(t, seed)
		result, info := porcupine.CheckOperationsVerbose(linearModel().ToModel(), h, time.Minute)
		if result != porcupine.Ok {
			path := t.TempDir() + "/history.html"
			_ = porcupine.VisualizePath(linearModel().ToModel(), info, path)
			t.Fatalf("seed %d: the history is %v", seed, result)
		}
	}
}

// linearInput is an operation on a log, a claim or a value.
type linearInput struct {
	on     string // "log", "claim" or "value"
	op     string // "append", "take", "release", "set" or "read"
	who    int    // of a claim: the client, from 1
	expect uint64
}

type linearOutput struct {
	ok      bool
	unknown bool   // the power failed before the outcome was known
	number  uint64 // sequence, holder or version: the new one, or the conflicting one
}

func linearModel() *porcupine.NondeterministicModel {
	return &porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := map[string][]porcupine.Operation{}
			for _, op := range history {
				on := op.Input.(linearInput).on
				parts[on] = append(parts[on], op)
			}
			var out [][]porcupine.Operation
			for _, part := range parts {
				out = append(out, part)
			}
			return out
		},
		Init: func() []any { return []any{uint64(0)} },
		Step: func(state, input, output any) []any {
			return linearStep(state.(uint64), input.(linearInput), output.(linearOutput))
		},
		Equal: func(a, b any) bool { return a == b },
		DescribeOperation: func(input, output any) string {
			return fmt.Sprintf("%+v -> %+v", input, output)
		},
	}
}

// linearStep returns the states that may follow, or none if the output is wrong.
func linearStep(state uint64, in linearInput, out linearOutput) []any {
	applies, next := false, state
	switch in.op {
	case "append":
		applies, next = state == in.expect, state+1
	case "set":
		applies, next = state == in.expect, out.number
	case "take":
		applies, next = state == 0, uint64(in.who)
	case "release":
		applies, next = true, state
		if state == uint64(in.who) {
			next = 0
		}
	case "read":
		if out.number != state {
			return nil
		}
		return []any{state}
	}
	switch {
	case out.unknown && applies:
		return []any{state, next}
	case out.unknown:
		return []any{state}
	case out.ok != applies:
		return nil
	case out.ok:
		if in.op == "append" && out.number != next {
			return nil
		}
		return []any{next}
	case out.number != state:
		return nil
	}
	return []any{state}
}

func recordHistory(t *testing.T, seed uint64) []porcupine.Operation {
	t.Helper()
	const clients, phases, each = 5, 3, 8
	var mu sync.Mutex
	var history []porcupine.Operation
	clock := func() int64 { return time.Now().UnixNano() }
	e, faults := open(t, journaltest.Options{})
	for phase := range phases {
		var crashed atomic.Bool
		var wg sync.WaitGroup
		done := make(chan struct{}, clients*each)
		for c := range clients {
			rng := rand.New(rand.NewPCG(seed, uint64(phase*clients+c)))
			wg.Go(func() {
				known := map[string]uint64{}
				for range each {
					in := drawOperation(rng, c+1, known)
					called := clock()
					out, again := perform(e, in)
					done <- struct{}{}
					if crashed.Load() {
						out.unknown = true // it may be from before the crash
					}
					if again || (out.unknown && in.op == "read") {
						continue // it had no effect
					}
					known[in.on] = out.number
					op := porcupine.Operation{ClientId: phase*clients + c, Input: in, Call: called, Output: out, Return: clock()}
					if out.unknown {
						op.Return = 1 << 62
					}
					mu.Lock()
					history = append(history, op)
					mu.Unlock()
					if crashed.Load() {
						return
					}
				}
			})
		}
		if phase < phases-1 && seed%2 == 0 {
			// The power fails in the middle of the phase.
			for range 3 + rand.New(rand.NewPCG(seed, 99)).IntN(clients*each/3) {
				<-done
			}
			_, release := faults.HoldSync()
			crashed.Store(true)
			faults.Crash()
			release()
		}
		wg.Wait()
		crashed.Store(true)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e, faults = faults.Reopen(t)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return history
}

func drawOperation(rng *rand.Rand, who int, known map[string]uint64) linearInput {
	on := []string{"log", "claim", "value"}[rng.IntN(3)]
	in := linearInput{on: on, who: who, expect: known[on]}
	if rng.IntN(4) == 0 {
		in.op = "read"
		return in
	}
	switch on {
	case "log":
		in.op = "append"
	case "value":
		in.op = "set"
	case "claim":
		in.op = []string{"take", "release"}[rng.IntN(2)]
	}
	return in
}

var (
	linearLog   = room.In("linear", "log")
	linearValue = journal.ValueKey{Partition: room, Name: "linear"}
)

func linearBatch(in linearInput) journal.Batch {
	own := room.In("linear", fmt.Sprint(in.who))
	switch in.op {
	case "append":
		return journal.Batch{Appends: []journal.Append{{
			Log: linearLog, Expect: journal.Exactly(in.expect), Records: []journal.Record{{Data: []byte("x")}},
		}}}
	case "set":
		return journal.Batch{Values: []journal.ValueWrite{{Key: linearValue, Expect: journal.Exactly(in.expect), Data: []byte("x")}}}
	case "take":
		return journal.Batch{Appends: []journal.Append{{Log: own, Records: []journal.Record{{Take: []journal.Take{{Name: "linear"}}}}}}}
	}
	return journal.Batch{Appends: []journal.Append{{Log: own, Records: []journal.Record{{Release: []string{"linear"}}}}}}
}

// perform does one operation and waits until its result is final. none is true if the
// operation had no effect and no result.
func perform(e journal.Engine, in linearInput) (out linearOutput, none bool) {
	if in.op == "read" {
		return readLinear(e, in)
	}
	ticket, err := e.Append(ctx, linearBatch(in))
	var conflict *journal.ConflictError
	switch {
	case errors.As(err, &conflict):
		// A refusal is final when the batch that it lost to is.
		if conflict.LostTo.Wait(ctx) != nil {
			return out, true
		}
		out.number = conflict.Actual
		if conflict.Kind == journal.ClaimConflict {
			_, _ = fmt.Sscan(conflict.Claim.Log.ID, &out.number)
		}
		return out, false
	case err != nil:
		return out, true
	}
	out.ok = true
	switch in.op {
	case "append":
		out.number = ticket.Appended()[0].Last
	case "set":
		out.number = ticket.Offset()
	}
	if ticket.Wait(ctx) != nil {
		out.unknown = true
	}
	return out, false
}

func readLinear(e journal.Engine, in linearInput) (out linearOutput, none bool) {
	out.ok = true
	switch in.on {
	case "log":
		heads, err := e.Head(ctx, linearLog)
		out.number = heads.Durable.Seq
		return out, err != nil
	case "value":
		state, err := e.Value(ctx, linearValue)
		out.number = state.Durable.Version
		return out, err != nil
	}
	state, err := e.Claim(ctx, 0, "linear")
	if state.Durable != nil {
		_, _ = fmt.Sscan(state.Durable.Log.ID, &out.number)
	}
	return out, err != nil
}
