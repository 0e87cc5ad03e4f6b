package journaltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/journal"
)

// patience bounds every wait of the suite; only a failure reaches it.
const patience = 5 * time.Minute

// failer is the part of testing.T that helpers use; rapid.T has it too.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// rig is one open engine under test.
type rig struct {
	t  failer
	tb testing.TB
	journal.Engine
	Faults
	ctx context.Context
}

func start(t testing.TB, open Open, opts Options) *rig {
	t.Helper()
	e, f := open(t, opts)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r := &rig{t: t, tb: t, Engine: e, Faults: f, ctx: ctx}
	t.Cleanup(func() {
		_ = r.Engine.Close()
		cancel()
	})
	return r
}

// reopen closes the engine and opens its store again.
func (r *rig) reopen() {
	r.t.Helper()
	need(r.t, r.Engine.Close())
	r.Engine, r.Faults = r.Faults.Reopen(r.tb)
}

// crash loses what is not synced and opens the store again.
func (r *rig) crash() {
	r.t.Helper()
	r.Faults.Crash()
	_ = r.Engine.Close()
	r.Engine, r.Faults = r.Faults.Reopen(r.tb)
}

// restore opens a store made from a checkpoint of this one.
func (r *rig) restore(dir string) {
	r.t.Helper()
	need(r.t, r.Engine.Close())
	r.Engine, r.Faults = r.Faults.Restore(r.tb, dir)
}

// order appends and returns the ticket.
func (r *rig) order(b journal.Batch) *journal.Ticket {
	r.t.Helper()
	ticket, err := r.Append(r.ctx, b)
	need(r.t, err)
	return ticket
}

// commit appends and waits.
func (r *rig) commit(b journal.Batch) *journal.Ticket {
	r.t.Helper()
	ticket := r.order(b)
	need(r.t, ticket.Wait(r.ctx))
	return ticket
}

// refused appends a batch that must conflict.
func (r *rig) refused(b journal.Batch, kind journal.ConflictKind) *journal.ConflictError {
	r.t.Helper()
	ticket, err := r.Append(r.ctx, b)
	var conflict *journal.ConflictError
	if ticket != nil || !errors.As(err, &conflict) {
		r.t.Fatalf("got ticket %v and error %v, want a conflict", ticket, err)
	}
	equal(r.t, conflict.Kind, kind)
	if conflict.LostTo == nil {
		r.t.Fatal("the conflict does not say which ticket it lost to")
	}
	return conflict
}

func (r *rig) head(log journal.LogName) journal.Heads {
	r.t.Helper()
	heads, err := r.Head(r.ctx, log)
	need(r.t, err)
	return heads
}

// shard returns the shard of the partitions home and other.
func (r *rig) shard() int { return r.Shard(home) }

func (r *rig) place() journal.Place {
	r.t.Helper()
	place, err := r.Place(r.ctx, r.shard())
	need(r.t, err)
	return place
}

// unmoved requires that nothing was ordered since a place. The term may have changed.
func (r *rig) unmoved(since journal.Place) {
	r.t.Helper()
	now := r.place()
	now.Term = since.Term
	equal(r.t, now, since)
}

// texts reads a whole log.
func (r *rig) texts(log journal.LogName) []string {
	r.t.Helper()
	return r.read(log, journal.ReadOptions{})
}

func (r *rig) read(log journal.LogName, opts journal.ReadOptions) []string {
	r.t.Helper()
	var out []string
	for entry, err := range journal.Records(r.ctx, r.Engine, log, opts) {
		need(r.t, err)
		out = append(out, string(entry.Data))
	}
	return out
}

// index returns the whole index as "key=value".
func (r *rig) index() []string {
	r.t.Helper()
	return r.scan(journal.ScanOptions{})
}

func (r *rig) scan(opts journal.ScanOptions) []string {
	r.t.Helper()
	var out []string
	for entry, err := range journal.Index(r.ctx, r.Engine, r.shard(), opts) {
		need(r.t, err)
		out = append(out, string(entry.Key)+"="+string(entry.Value))
	}
	return out
}

func (r *rig) claim(name string) journal.ClaimState {
	r.t.Helper()
	state, err := r.Claim(r.ctx, r.shard(), name)
	need(r.t, err)
	return state
}

func (r *rig) value(key journal.ValueKey) journal.ValueState {
	r.t.Helper()
	state, err := r.Value(r.ctx, key)
	need(r.t, err)
	return state
}

func (r *rig) lazy(key journal.ValueKey) string {
	r.t.Helper()
	v, err := r.LazyValue(r.ctx, key)
	need(r.t, err)
	return string(v.Data)
}

// settleRemovals waits until no removal is running.
func (r *rig) settleRemovals() {
	r.t.Helper()
	for r.Stats().Removals > 0 {
		if r.ctx.Err() != nil {
			r.t.Fatal("removal does not end")
		}
		// Waiting for a durable batch lets the engine work, without sleeping.
		r.commit(batch(to(home.In("tick", "tick"), "tick")))
	}
}

// await waits for a signal of the fault handle.
func (r *rig) await(ch <-chan struct{}, what string) {
	r.t.Helper()
	select {
	case <-ch:
	case <-r.ctx.Done():
		r.t.Fatalf("%s did not happen", what)
	}
}

// workers run at once; Wait returns the first error.
type workers struct {
	wg    sync.WaitGroup
	once  sync.Once
	first error
}

func (w *workers) Go(run func() error) {
	w.wg.Go(func() {
		if err := run(); err != nil {
			w.once.Do(func() { w.first = err })
		}
	})
}

func (w *workers) Wait() error {
	w.wg.Wait()
	return w.first
}

var (
	home = journal.PartitionName{Tenant: "acme", Partition: "home"}
	// other shares home's shard in engines with 1, 8 and 12 shards.
	other = journal.PartitionName{Tenant: "acme", Partition: "agent/other25"}
	alpha = home.In("log", "alpha")
	beta  = home.In("log", "beta")
)

func batch(appends ...journal.Append) journal.Batch { return journal.Batch{Appends: appends} }

func to(log journal.LogName, texts ...string) journal.Append {
	a := journal.Append{Log: log}
	for _, text := range texts {
		a.Records = append(a.Records, journal.Record{Data: []byte(text)})
	}
	return a
}

func records(log journal.LogName, list ...journal.Record) journal.Append {
	return journal.Append{Log: log, Records: list}
}

func expecting(seq uint64, a journal.Append) journal.Append {
	a.Expect = journal.Exactly(seq)
	return a
}

func put(key, value string) journal.IndexPut {
	return journal.IndexPut{Key: []byte(key), Value: []byte(value)}
}

func numbered(prefix string, from, to int) []string {
	var out []string
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprintf("%s%d", prefix, i))
	}
	return out
}

func need(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T any](t failer, got, want T) {
	t.Helper()
	opt := cmp.Comparer(func(a, b *journal.Ticket) bool { return a == b })
	if diff := cmp.Diff(want, got, opt); diff != "" {
		t.Fatalf("got differs from want (-want +got):\n%s", diff)
	}
}

// ended waits for a ticket and requires one of the given outcomes.
func ended(ctx context.Context, t failer, ticket *journal.Ticket, outcomes ...journal.Outcome) journal.Outcome {
	t.Helper()
	select {
	case <-ticket.Done():
	case <-ctx.Done():
		t.Fatalf("ticket of offset %d does not end", ticket.Offset())
	}
	for _, o := range outcomes {
		if ticket.Outcome() == o {
			return o
		}
	}
	t.Fatalf("ticket ended %v, want one of %v", ticket.Outcome(), outcomes)
	return journal.Pending
}

func pending(t failer, tickets ...*journal.Ticket) {
	t.Helper()
	for _, ticket := range tickets {
		select {
		case <-ticket.Done():
			t.Fatalf("ticket of offset %d ended %v before its sync", ticket.Offset(), ticket.Outcome())
		default:
			equal(t, ticket.Outcome(), journal.Pending)
		}
	}
}

func invalid(t failer, err error) {
	t.Helper()
	if !errors.Is(err, journal.ErrInvalid) {
		t.Fatalf("got error %v, want ErrInvalid", err)
	}
}
