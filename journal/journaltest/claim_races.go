package journaltest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/journal"
)

// claimRaces runs many writers that take a few claims and give them up in every way,
// while the index is rebuilt. No other writer gets a claim until its holder gives it
// up.
func claimRaces(t *testing.T, open Open) {
	const writers, rounds, names = 8, 60, 3
	r := start(t, open, Options{})
	var holders [names]atomic.Int64
	var group workers
	for w := range writers {
		group.Go(func() error {
			rnd := rand.New(rand.NewPCG(uint64(w), 1)) //nolint:gosec // a test needs no secrecy
			log := home.In("log", fmt.Sprint("writer", w))
			for i := range rounds {
				n := rnd.IntN(names)
				name := fmt.Sprint("c", n)
				// The other claims evict c from an engine's cache.
				ticket, err := r.Append(r.ctx, taking(log, fmt.Sprintf("fresh/%d/%d", w, i), name))
				if conflict, ok := errors.AsType[*journal.ConflictError](err); ok {
					if rnd.IntN(2) == 0 {
						err = conflict.LostTo.Wait(r.ctx)
					} else {
						err = nil
					}
				} else if err == nil {
					if !holders[n].CompareAndSwap(0, int64(w)+1) {
						return fmt.Errorf("%s was given to writer %d while %d had it", name, w, holders[n].Load()-1)
					}
					err = giveUp(r, rnd, log, name, ticket, func() { holders[n].Store(0) })
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	group.Go(func() error {
		for range 5 {
			if err := r.RebuildIndex(r.ctx); err != nil {
				return err
			}
		}
		return nil
	})
	need(t, group.Wait())
	r.commit(batch(to(home.In("log", "last"), "all before it is durable")))
	r.settleRemovals()
	before := [names]journal.ClaimState{}
	for n := range names {
		before[n] = r.claim(fmt.Sprint("c", n))
		equal(t, before[n], journal.ClaimState{})
	}
	need(t, r.RebuildIndex(r.ctx))
	for n := range names {
		equal(t, r.claim(fmt.Sprint("c", n)), before[n])
	}
}

// giveUp ends a writer's claim by a release or by a drop of its log. It may first wait
// until the claim is durable, and then checks that the writer holds it.
func giveUp(r *rig, rnd *rand.Rand, log journal.LogName, name string, taken *journal.Ticket, before func()) error {
	if rnd.IntN(2) == 0 {
		if err := taken.Wait(r.ctx); err != nil {
			return err
		}
		state, err := r.Claim(r.ctx, r.shard(), name)
		if err != nil {
			return err
		}
		if state.Durable == nil || state.Durable.Log != log || state.Durable.Offset != taken.Offset() {
			return fmt.Errorf("%s is held by %+v, not by %v", name, state.Durable, log)
		}
	}
	before()
	if rnd.IntN(4) == 0 {
		_, err := r.Drop(r.ctx, log)
		return err
	}
	_, err := r.Append(r.ctx, releasing(log, name))
	return err
}

// claimExpiryRaces runs many writers that take a claim that has just expired.
func claimExpiryRaces(t *testing.T, open Open) {
	clock := newClock()
	r := start(t, open, Options{Now: clock.now})
	for round := range 20 {
		var won atomic.Int64
		var group workers
		for w := range 6 {
			group.Go(func() error {
				ticket, err := r.Append(r.ctx, batch(records(home.In("log", fmt.Sprint(w)), journal.Record{
					Take: []journal.Take{{Name: "lease", Expires: clock.now().Add(time.Second)}},
				})))
				if conflict, ok := errors.AsType[*journal.ConflictError](err); ok {
					return conflict.LostTo.Wait(r.ctx)
				}
				if err != nil {
					return err
				}
				won.Add(1)
				return ticket.Wait(r.ctx)
			})
		}
		need(t, group.Wait())
		if won.Load() != 1 {
			t.Fatalf("round %d: %d writers got the claim", round, won.Load())
		}
		clock.advance(time.Second)
	}
}

// claimTakenMeanwhile makes an append wait for room. Before the append is ordered,
// another log takes the claim that it names, and then many other claims.
func claimTakenMeanwhile(t *testing.T, open Open) {
	const room = 4 << 10
	r := start(t, open, Options{MaxUnsynced: room})
	r.commit(batch(to(beta, "b")))
	reached, release := r.HoldSync()
	defer release()
	r.order(batch(to(alpha, strings.Repeat("x", room/2))))
	r.await(reached, "a sync")
	var group workers
	group.Go(func() error {
		large := taking(beta, "c")
		large.Appends[0].Records[0].Data = make([]byte, room-64)
		_, err := r.Append(r.ctx, large)
		var conflict *journal.ConflictError
		if !errors.As(err, &conflict) || conflict.Claim.Log != alpha {
			return fmt.Errorf("got error %w, want a conflict with %v", err, alpha)
		}
		return nil
	})
	for range 1000 {
		runtime.Gosched() // until the append waits
	}
	holder := r.order(taking(alpha, "c"))
	for i := range 20 {
		r.order(taking(alpha, fmt.Sprint("other", i)))
	}
	release()
	need(t, holder.Wait(r.ctx))
	need(t, group.Wait())
}
