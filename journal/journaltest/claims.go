package journaltest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/journal"
)

var claimCases = []testCase{
	{"a held claim fails the batch and names the holder", claimHeld},
	{"a claim is released by the log that holds it only", claimReleased},
	{"a claim is prolonged by releasing and taking it", claimProlonged},
	{"a claim expires", claimExpired},
	{"a claim on its way is held", claimPending},
	{"dropping a log releases its claims", claimDropped},
	{"a claim lost to a batch that fails is free again", claimLostToFailed},
	{"of many who take a claim at once one gets it, however it was given up", claimRaces},
	{"a claim that expires is taken by one of many", claimExpiryRaces},
	{"a claim taken while an append waits for room is held", claimTakenMeanwhile},
}

func taking(log journal.LogName, names ...string) journal.Batch {
	r := journal.Record{Data: []byte("take")}
	for _, name := range names {
		r.Take = append(r.Take, journal.Take{Name: name})
	}
	return batch(records(log, r))
}

func releasing(log journal.LogName, names ...string) journal.Batch {
	return batch(records(log, journal.Record{Data: []byte("release"), Release: names}))
}

func claimHeld(t *testing.T, open Open) {
	r := start(t, open, Options{})
	r.commit(batch(to(alpha, "first")))
	ticket := r.commit(taking(alpha, "name/x", "name/y"))
	want := journal.Claimed{
		Name: "name/x", Log: alpha, Incarnation: ticket.Appended()[0].Incarnation, Seq: 2, Offset: ticket.Offset(),
	}
	equal(t, r.claim("name/x"), journal.ClaimState{Durable: &want, Ordered: &want})
	// A claim is exclusive across partitions, also against its own log.
	for _, log := range []journal.LogName{beta, alpha, other.In("log", "x")} {
		conflict := r.refused(taking(log, "name/z", "name/x"), journal.ClaimConflict)
		equal(t, conflict.Claim, want)
		equal(t, conflict.LostTo.Outcome(), journal.Durable)
		equal(t, conflict.LostTo.Offset(), ticket.Offset())
	}
	equal(t, r.claim("name/z"), journal.ClaimState{})
	equal(t, r.claim("name/"), journal.ClaimState{})
	r.reopen()
	equal(t, r.refused(taking(beta, "name/x"), journal.ClaimConflict).Claim, want)
}

func claimReleased(t *testing.T, open Open) {
	r := start(t, open, Options{})
	r.commit(taking(alpha, "c", "d"))
	r.commit(releasing(beta, "c", "unheld"))
	_ = r.refused(taking(beta, "c"), journal.ClaimConflict)
	r.commit(releasing(alpha, "c"))
	equal(t, r.claim("c"), journal.ClaimState{})
	taken := r.commit(taking(beta, "c"))
	equal(t, r.claim("c").Durable.Log, beta)
	equal(t, r.claim("c").Durable.Offset, taken.Offset())
	equal(t, r.claim("d").Durable.Log, alpha)
	// Within one batch, records apply in order.
	r.commit(batch(
		records(alpha, journal.Record{Release: []string{"d"}}),
		records(beta, journal.Record{Take: []journal.Take{{Name: "d"}}}, journal.Record{Release: []string{"d"}}),
	))
	equal(t, r.claim("d"), journal.ClaimState{})
	r.reopen()
	equal(t, r.claim("c").Durable.Log, beta)
	equal(t, r.claim("d"), journal.ClaimState{})
}

func claimProlonged(t *testing.T, open Open) {
	clock := newClock()
	r := start(t, open, Options{Now: clock.now})
	at := clock.now()
	take := func(d time.Duration) journal.Batch {
		return batch(records(alpha, journal.Record{
			Release: []string{"lease"}, Take: []journal.Take{{Name: "lease", Expires: at.Add(d)}},
		}))
	}
	r.commit(take(time.Minute))
	r.commit(take(time.Hour))
	clock.advance(2 * time.Minute)
	conflict := r.refused(taking(beta, "lease"), journal.ClaimConflict)
	equal(t, conflict.Claim.Seq, uint64(2))
	if !conflict.Claim.Expires.Equal(at.Add(time.Hour)) {
		t.Fatalf("expires %v, want %v", conflict.Claim.Expires, at.Add(time.Hour))
	}
}

func claimExpired(t *testing.T, open Open) {
	clock := newClock()
	r := start(t, open, Options{Now: clock.now})
	lease := func(log journal.LogName, d time.Duration) journal.Batch {
		return batch(records(log, journal.Record{Take: []journal.Take{{Name: "c", Expires: clock.now().Add(d)}}}))
	}
	r.commit(lease(alpha, time.Second))
	clock.advance(time.Second - time.Millisecond)
	_ = r.refused(taking(beta, "c"), journal.ClaimConflict)
	r.reopen()
	equal(t, r.claim("c").Durable.Log, alpha)
	clock.advance(time.Millisecond)
	equal(t, r.claim("c"), journal.ClaimState{})
	r.commit(lease(beta, time.Second))
	// The old holder no longer holds the claim that it releases.
	r.commit(releasing(alpha, "c"))
	equal(t, r.claim("c").Durable.Log, beta)
	before := r.claim("c")
	need(t, r.RebuildIndex(r.ctx))
	equal(t, r.claim("c"), before)
	clock.advance(time.Hour)
	need(t, r.RebuildIndex(r.ctx))
	equal(t, r.claim("c"), journal.ClaimState{})
	r.commit(taking(alpha, "c"))
	clock.advance(1000 * time.Hour)
	equal(t, r.claim("c").Durable.Log, alpha)
}

func claimPending(t *testing.T, open Open) {
	r := start(t, open, Options{})
	r.commit(batch(to(beta, "b")))
	reached, release := r.HoldSync()
	defer release()
	first := r.order(taking(alpha, "c"))
	r.await(reached, "a sync")
	conflict := r.refused(taking(beta, "c"), journal.ClaimConflict)
	equal(t, conflict.LostTo, first)
	state := r.claim("c")
	equal(t, state.Durable, nil)
	equal(t, state.Ordered.Log, alpha)
	equal(t, state.Pending, first)
	second := r.order(releasing(alpha, "c"))
	equal(t, r.claim("c"), journal.ClaimState{Pending: second})
	third := r.order(taking(beta, "c"))
	equal(t, r.claim("c").Pending, third)
	pending(t, first, second, third)
	release()
	need(t, third.Wait(r.ctx))
	equal(t, r.claim("c").Durable.Log, beta)
	equal(t, r.claim("c").Pending, nil)
}

func claimDropped(t *testing.T, open Open) {
	r := start(t, open, Options{})
	r.commit(taking(alpha, "c", "d"))
	r.commit(taking(beta, "e"))
	reached, release := r.HoldSync()
	defer release()
	drop, err := r.Drop(r.ctx, alpha)
	need(t, err)
	r.await(reached, "a sync")
	state := r.claim("c")
	equal(t, state.Durable.Log, alpha)
	equal(t, state.Ordered, nil)
	equal(t, state.Pending, drop)
	retaken := r.order(taking(beta, "c"))
	release()
	need(t, retaken.Wait(r.ctx))
	equal(t, r.claim("c").Durable.Log, beta)
	equal(t, r.claim("d"), journal.ClaimState{})
	r.settleRemovals()
	equal(t, r.claim("c").Durable.Log, beta)
	equal(t, r.claim("d"), journal.ClaimState{})
	equal(t, r.claim("e").Durable.Log, beta)
	need(t, r.RebuildIndex(r.ctx))
	equal(t, r.claim("c").Durable.Log, beta)
	equal(t, r.claim("d"), journal.ClaimState{})
}

// claimLostToFailed checks a batch that is refused because of one that never becomes
// durable.
func claimLostToFailed(t *testing.T, open Open) {
	r := start(t, open, Options{})
	r.commit(batch(to(beta, "b")))
	reached, release := r.HoldSync()
	defer release()
	first := r.order(batch(to(alpha, "1")))
	r.await(reached, "a sync")
	holder := r.order(taking(alpha, "c"))
	conflict := r.refused(taking(beta, "c"), journal.ClaimConflict)
	equal(t, conflict.LostTo, holder)
	equal(t, conflict.Claim.Log, alpha)
	r.FailWrite()
	release()
	need(t, first.Wait(r.ctx))
	outcome := ended(r.ctx, t, conflict.LostTo, journal.Failed, journal.Unknown)
	if r.Health().State != journal.Ready {
		_ = r.Engine.Close()
		r.Engine, r.Faults = r.Faults.Reopen(t)
	}
	if outcome == journal.Failed || r.claim("c").Durable == nil {
		equal(t, r.claim("c"), journal.ClaimState{})
		r.commit(taking(beta, "c"))
		equal(t, r.claim("c").Durable.Log, beta)
	}
}

// clock is a clock that tests move.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMilli())
	return c
}

func (c *clock) now() time.Time { return time.UnixMilli(c.ms.Load()).UTC() }

func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }
