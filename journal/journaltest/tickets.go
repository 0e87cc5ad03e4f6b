package journaltest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/parley-hub/parley/journal"
)

var ticketCases = []testCase{
	{"a ticket ends durable when its batch is synced", ticketDurable},
	{"a batch that fails is never there, and all behind it are aborted", ticketFailed},
	{"a sync that fails leaves its batch unknown and the engine dead, or is found out about", ticketUnknown},
	{"with the sync held back nobody sees the batch, and a crash takes it away", syncHeld},
	{"waiting ends with its context", waitContext},
	{"a batch of a forgotten term is refused", forgottenTerm},
	{"appends wait while too much is unsynced", backPressure},
}

func ticketDurable(t *testing.T, open Open) {
	r := start(t, open, Options{})
	ticket := r.order(batch(to(alpha, "x")))
	ended(r.ctx, t, ticket, journal.Durable)
	need(t, ticket.Err())
	need(t, ticket.Wait(r.ctx))
	// A batch whose ticket ended durable can be read at once, and after a crash.
	equal(t, r.texts(alpha), []string{"x"})
	equal(t, r.head(alpha).Pending, nil)
	equal(t, r.place().Durable, ticket.Offset())
	r.crash()
	equal(t, r.texts(alpha), []string{"x"})
	equal(t, r.Health().State, journal.Ready)
}

// queue orders one batch whose sync is held, and three batches after it.
func queue(r *rig) (first *journal.Ticket, behind []*journal.Ticket, release func()) {
	r.t.Helper()
	reached, release := r.HoldSync()
	first = r.order(batch(to(alpha, "2")))
	r.await(reached, "a sync")
	behind = append(behind, r.order(batch(to(beta, "1"))), r.order(taking(alpha, "c")))
	behind = append(behind, r.order(setting("v", "x")))
	return first, behind, release
}

func ticketFailed(t *testing.T, open Open) {
	r := start(t, open, Options{})
	r.commit(batch(to(alpha, "1")))
	first, behind, release := queue(r)
	defer release()
	// The group in flight succeeds; the next group fails.
	r.FailWrite()
	release()
	need(t, first.Wait(r.ctx))
	for _, ticket := range behind {
		outcome := ended(r.ctx, t, ticket, journal.Failed, journal.Unknown, journal.Aborted)
		var why *journal.OutcomeError
		if err := ticket.Wait(r.ctx); !errors.As(err, &why) || !journal.Retryable(err) {
			t.Fatalf("a ticket that ended %v waits with %v", outcome, err)
		}
		equal(t, why.Outcome, outcome)
		equal(t, why.Offset, ticket.Offset())
	}
	equal(t, r.texts(alpha), []string{"1", "2"})
	lost := behind[0].Outcome() == journal.Failed
	if h := r.Health(); h.State == journal.Ready {
		// The shard continues from what is durable.
		place := r.place()
		equal(t, place.Ordered, first.Offset())
		equal(t, place.Durable, first.Offset())
		if place.Term <= first.Term() {
			t.Fatalf("the term is still %d", place.Term)
		}
		equal(t, r.claim("c"), journal.ClaimState{})
		equal(t, r.value(key("v")), journal.ValueState{})
		equal(t, r.head(beta).Ordered.Seq, uint64(0))
		again := r.commit(batch(expecting(2, to(alpha, "3"))))
		equal(t, again.Offset(), first.Offset()+1)
		equal(t, r.texts(alpha), []string{"1", "2", "3"})
	}
	r.crash()
	if lost {
		equal(t, r.texts(beta), nil)
		equal(t, r.claim("c"), journal.ClaimState{})
	}
}

func ticketUnknown(t *testing.T, open Open) {
	r := start(t, open, Options{})
	r.commit(batch(to(alpha, "1")))
	follower, err := r.Follow(r.ctx, alpha, journal.Position{})
	need(t, err)
	_, err = follower.Next(r.ctx)
	need(t, err)
	first, behind, release := queue(r)
	defer release()
	ends := r.FailSync()
	release()
	if !ends {
		ended(r.ctx, t, first, journal.Durable, journal.Failed)
		for _, ticket := range behind {
			ended(r.ctx, t, ticket, journal.Durable, journal.Failed, journal.Aborted)
		}
		select {
		case <-r.Failed():
			t.Fatal("the engine is dead")
		default:
		}
		return
	}
	ended(r.ctx, t, first, journal.Unknown)
	for _, ticket := range behind {
		ended(r.ctx, t, ticket, journal.Aborted)
	}
	r.await(r.Failed(), "the end of the engine")
	equal(t, r.Health().State, journal.Broken)
	_, err = r.Append(r.ctx, batch(to(beta, "x")))
	if !errors.Is(err, journal.ErrFailed) || !journal.Retryable(err) {
		t.Fatalf("a failed engine answers %v, want ErrFailed", err)
	}
	if _, err := r.Drop(r.ctx, alpha); !errors.Is(err, journal.ErrFailed) {
		t.Fatalf("a failed engine answers a drop with %v, want ErrFailed", err)
	}
	if err := r.PutLazy(r.ctx, journal.ValueWrite{Key: key("x")}); !errors.Is(err, journal.ErrFailed) {
		t.Fatalf("a failed engine answers a lazy write with %v, want ErrFailed", err)
	}
	// A waiting follower gets the error; no reader saw the batch with the unknown outcome.
	if page, err := follower.Next(r.ctx); err == nil {
		t.Fatalf("a follower was shown %v", page.Entries)
	}
	_ = r.Engine.Close()
	r.Engine, r.Faults = r.Faults.Reopen(t)
	got := r.texts(alpha)
	if len(got) != 1 && len(got) != 2 {
		t.Fatalf("after the open the log is %v", got)
	}
	equal(t, r.texts(beta), nil)
	equal(t, r.claim("c"), journal.ClaimState{})
	r.commit(batch(expecting(uint64(len(got)), to(alpha, "next"))))
}

func syncHeld(t *testing.T, open Open) {
	r := start(t, open, Options{})
	base := r.commit(batch(records(alpha, journal.Record{Data: []byte("1"), Put: []journal.IndexPut{put("k", "1")}})))
	follower, err := r.Follow(r.ctx, alpha, base.Position(0))
	need(t, err)
	shard, err := r.FollowShard(r.ctx, r.shard(), journal.ShardPosition{Epoch: base.Epoch(), Offset: base.Offset()})
	need(t, err)
	reached, release := r.HoldSync()
	defer release()
	ticket := r.order(journal.Batch{
		Appends: []journal.Append{
			records(alpha, journal.Record{Data: []byte("2"), Put: []journal.IndexPut{put("k", "2")}, Take: []journal.Take{{Name: "c"}}}),
			to(beta, "b"),
		},
		Values: []journal.ValueWrite{{Key: key("v"), Data: []byte("x")}},
	})
	equal(t, ticket.Appended()[0].Last, uint64(2))
	r.await(reached, "a sync")

	seen := func() {
		t.Helper()
		equal(t, r.texts(alpha), []string{"1"})
		equal(t, r.read(alpha, journal.ReadOptions{Backward: true}), []string{"1"})
		equal(t, r.read(alpha, journal.ReadOptions{From: 2}), nil)
		equal(t, r.texts(beta), nil)
		equal(t, r.index(), []string{"k=1"})
		equal(t, r.claim("c").Durable, nil)
		equal(t, r.value(key("v")).Durable, journal.Value{})
		equal(t, r.head(alpha).Durable.Seq, uint64(1))
		equal(t, r.head(beta).Durable.Incarnation, uint64(0))
		page, err := r.Logs(r.ctx, home, journal.LogsOptions{})
		need(t, err)
		equal(t, len(page.Logs), 1)
		equal(t, r.place().Durable, base.Offset())
	}
	seen()
	heads := r.head(alpha)
	equal(t, heads.Ordered.Seq, uint64(2))
	equal(t, heads.Pending, ticket)
	// A follower at the end waits.
	for _, next := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := follower.Next(ctx); return err },
		func(ctx context.Context) error { _, err := shard.Next(ctx); return err },
	} {
		ctx, cancel := context.WithCancel(r.ctx)
		got := make(chan error, 1)
		go func() { got <- next(ctx) }()
		seen()
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Fatalf("a follower got %v while the sync was held", err)
		}
	}
	pending(t, ticket)
	r.crash()
	seen()
	equal(t, r.head(alpha).Ordered.Seq, uint64(1))
	release()
	again := r.commit(batch(expecting(1, to(alpha, "other 2"))))
	equal(t, again.Offset(), ticket.Offset())
	equal(t, r.texts(alpha), []string{"1", "other 2"})
}

func waitContext(t *testing.T, open Open) {
	r := start(t, open, Options{})
	_, release := r.HoldSync()
	defer release()
	ticket := r.order(batch(to(alpha, "x")))
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	if err := ticket.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("waiting with an ended context returned %v", err)
	}
	if _, err := r.Append(ctx, batch(to(alpha, "y"))); !errors.Is(err, context.Canceled) {
		t.Fatalf("appending with an ended context returned %v", err)
	}
	release()
	need(t, ticket.Wait(r.ctx))
	equal(t, r.texts(alpha), []string{"x"})
}

func forgottenTerm(t *testing.T, open Open) {
	r := start(t, open, Options{})
	term := r.place().Term
	b := batch(to(alpha, "x"))
	b.Term = term
	equal(t, r.commit(b).Term(), term)
	b.Term = term + 1
	conflict := r.refused(b, journal.TermConflict)
	equal(t, conflict.Expected, term+1)
	equal(t, conflict.Actual, term)
	equal(t, r.texts(alpha), []string{"x"})
}

func backPressure(t *testing.T, open Open) {
	r := start(t, open, Options{MaxUnsynced: 1000})
	reached, release := r.HoldSync()
	defer release()
	big := string(make([]byte, 600))
	first := r.order(batch(to(alpha, big)))
	r.await(reached, "a sync")
	small := r.order(batch(to(alpha, "small"))) // there is room for this one
	ctx := newNoticed(r.ctx)
	stuck := make(chan error, 1)
	go func() {
		_, err := r.Append(ctx, batch(to(alpha, big)))
		stuck <- err
	}()
	select {
	case <-ctx.waited: // the call used Done, so it waits
	case err := <-stuck:
		t.Fatalf("an append beyond the bound did not wait, and returned %v", err)
	}
	ctx.cancel()
	if err := <-stuck; !errors.Is(err, context.Canceled) {
		t.Fatalf("an append beyond the bound returned %v", err)
	}
	later := newNoticed(r.ctx)
	waits := make(chan *journal.Ticket, 1)
	go func() {
		ticket, err := r.Append(later, batch(to(alpha, big)))
		if err != nil {
			t.Error(err)
		}
		waits <- ticket
	}()
	r.await(later.waited, "waiting for room")
	pending(t, first, small)
	release()
	last := <-waits
	need(t, last.Wait(r.ctx))
	equal(t, r.texts(alpha), []string{big, "small", big})
	equal(t, r.Stats().Unsynced, int64(0))
	// One batch over the bound is accepted when nothing else is in flight.
	r.commit(batch(to(beta, big, big)))
}

// noticed is a context that reports when Done is first called.
type noticed struct {
	context.Context
	cancel context.CancelFunc
	notice func()
	waited chan struct{}
}

func newNoticed(parent context.Context) *noticed {
	ctx, cancel := context.WithCancel(parent)
	n := &noticed{Context: ctx, cancel: cancel, waited: make(chan struct{})}
	n.notice = sync.OnceFunc(func() { close(n.waited) })
	return n
}

// Done implements context.Context.
func (n *noticed) Done() <-chan struct{} {
	n.notice()
	return n.Context.Done()
}
