package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/journaltest"
)

// TestExerciseWithTakeovers runs each case on two nodes that repeatedly take the lead
// from each other in the middle of it.
func TestExerciseWithTakeovers(t *testing.T) {
	var taken atomic.Int64
	journaltest.Exercise(t, duoOpener(natsServers{}, 1, &taken))
	enough(t, &taken)
}

// TestExerciseThreeShardsWithTakeovers runs on real servers from a scale of 2 on.
func TestExerciseThreeShardsWithTakeovers(t *testing.T) {
	var taken atomic.Int64
	journaltest.Exercise(t, duoOpener(many(), 3, &taken))
	enough(t, &taken)
}

func TestRandomWithTakeovers(t *testing.T) {
	t.Parallel()
	var taken atomic.Int64
	journaltest.Random(t, duoOpener(natsServers{}, 1, &taken))
	enough(t, &taken)
}

func TestRandomThreeShardsWithTakeovers(t *testing.T) {
	t.Parallel()
	var taken atomic.Int64
	journaltest.Random(t, duoOpener(natsServers{}, 3, &taken))
	enough(t, &taken)
}

func enough(t *testing.T, taken *atomic.Int64) {
	t.Helper()
	t.Logf("%d takeovers", taken.Load())
	if taken.Load() < 10 && !t.Failed() {
		t.Error("this test shows little: there were next to no takeovers")
	}
}

// duo is two nodes that act as one engine. All calls go to the one that leads; the
// other takes over now and then, when no ticket is pending.
type duo struct {
	journal.Engine // the one that leads; changed while no call is made
	rigs           [2]*rig
	at             int // of the one that leads
	taken          *atomic.Int64

	calls   sync.RWMutex // read: a call; written: a takeover
	mu      sync.Mutex
	pending []*journal.Ticket
	count   int
	still   int  // greater than 0: nothing may be taken over
	left    bool // crashed or closed
	stop    chan struct{}
	ended   sync.WaitGroup
}

var _ journaltest.Faults = (*duo)(nil)

func duoOpener(b backend, shards int, taken *atomic.Int64) journaltest.Open {
	return func(t testing.TB, opts journaltest.Options) (journal.Engine, journaltest.Faults) {
		t.Helper()
		name := b.create(t, shards, 1)
		var rigs [2]rig
		for i := range rigs {
			rigs[i] = rig{backend: b, name: name, shards: shards, node: fmt.Sprint("n", i), mem: vfs.NewCrashableMem(), dir: "/data", opts: opts}
		}
		return openDuo(t, rigs, taken)
	}
}

func openDuo(t testing.TB, rigs [2]rig, taken *atomic.Int64) (journal.Engine, journaltest.Faults) {
	t.Helper()
	d := &duo{taken: taken, stop: make(chan struct{})}
	fetch := func(ctx context.Context, from cluster.Node, shard int) (io.ReadCloser, error) {
		var archive bytes.Buffer
		other := d.rigs[0]
		if from.Name == d.rigs[1].node {
			other = d.rigs[1]
		}
		return io.NopCloser(&archive), other.engine.WriteCopy(ctx, shard, &archive)
	}
	for i := range rigs {
		r := rigs[i]
		r.gate, r.lost = newGate(r.backend.connect(t, r.name)), nil
		o := r.options(t)
		o.Log, o.Manual, o.Fetch = r.gate, true, fetch
		e, err := cluster.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		r.engine = e
		d.rigs[i] = &r
		if i == 0 {
			acquire(t, e)
		}
	}
	d.Engine = d.rigs[0].engine
	for shard := range rigs[0].shards {
		d.ended.Go(func() { d.keep(shard) })
	}
	return d, d
}

// keep takes the lead again after it was lost without a new leader, as nodes without
// Manual do.
func (d *duo) keep(shard int) {
	for {
		d.mu.Lock()
		e := d.rigs[d.at].engine
		d.mu.Unlock()
		mine, _, changed := e.Lead(shard)
		if !mine && d.calls.TryRLock() {
			d.mu.Lock()
			same := e == d.rigs[d.at].engine && !d.left
			d.mu.Unlock()
			if same {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				_ = e.Acquire(ctx)
				cancel()
			}
			d.calls.RUnlock()
		}
		select {
		case <-changed:
		case <-d.stop:
			return
		}
	}
}

// turn is called at the beginning of a call; the returned function is called at its
// end. It may take over before the call.
func (d *duo) turn(mayTake bool) (done func()) {
	d.mu.Lock()
	d.pending = slices.DeleteFunc(d.pending, func(t *journal.Ticket) bool { return t.Outcome() != journal.Pending })
	d.count++
	take := mayTake && d.count%4 == 0 && len(d.pending) == 0 && d.still == 0 && !d.left
	d.mu.Unlock()
	if take && d.calls.TryLock() {
		d.takeOver()
		d.calls.Unlock()
	}
	d.calls.RLock()
	return d.calls.RUnlock
}

func (d *duo) takeOver() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	old, next := d.rigs[d.at].engine, d.rigs[1-d.at].engine
	for shard := range old.Shards() { // ships lazy values
		if old.Health().State != journal.Ready || old.Confirm(ctx, shard) != nil {
			return
		}
	}
	if next.Acquire(ctx) != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = 1 - d.at
	d.Engine = next
	d.taken.Add(1)
}

func (d *duo) noted(t *journal.Ticket, err error) (*journal.Ticket, error) {
	if t != nil {
		d.mu.Lock()
		d.pending = append(d.pending, t)
		d.mu.Unlock()
	}
	return t, err
}

// quiet adds n to still; while still is greater than 0, the lead does not change.
func (d *duo) quiet(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.still += n
}

func (d *duo) Append(ctx context.Context, b journal.Batch) (*journal.Ticket, error) {
	defer d.turn(b.Term == 0)()
	return d.noted(d.Engine.Append(ctx, b))
}

func (d *duo) Drop(ctx context.Context, log journal.LogName) (*journal.Ticket, error) {
	defer d.turn(true)()
	return d.noted(d.Engine.Drop(ctx, log))
}

func (d *duo) DropPartition(ctx context.Context, p journal.PartitionName, keep ...string) (*journal.Ticket, error) {
	defer d.turn(true)()
	return d.noted(d.Engine.DropPartition(ctx, p, keep...))
}

func (d *duo) Head(ctx context.Context, log journal.LogName) (journal.Heads, error) {
	defer d.turn(true)()
	return d.Engine.Head(ctx, log)
}

func (d *duo) Read(ctx context.Context, log journal.LogName, opts journal.ReadOptions) (journal.Page, error) {
	defer d.turn(true)()
	return d.Engine.Read(ctx, log, opts)
}

func (d *duo) Value(ctx context.Context, key journal.ValueKey) (journal.ValueState, error) {
	defer d.turn(true)()
	return d.Engine.Value(ctx, key)
}

func (d *duo) LazyValue(ctx context.Context, key journal.ValueKey) (journal.Value, error) {
	defer d.turn(true)()
	return d.Engine.LazyValue(ctx, key)
}

func (d *duo) PutLazy(ctx context.Context, writes ...journal.ValueWrite) error {
	defer d.turn(true)()
	return d.Engine.PutLazy(ctx, writes...)
}

func (d *duo) Scan(ctx context.Context, shard int, opts journal.ScanOptions) (journal.ScanPage, error) {
	defer d.turn(true)()
	return d.Engine.Scan(ctx, shard, opts)
}

func (d *duo) Claim(ctx context.Context, shard int, name string) (journal.ClaimState, error) {
	defer d.turn(true)()
	return d.Engine.Claim(ctx, shard, name)
}

// awaitedLog is a follower on one node that reads what another node acknowledged: it
// first waits until its node has that, as nodes do for their clients.

type awaitedLog struct {
	journal.Follower
	await func()
}

func (f awaitedLog) Next(ctx context.Context) (journal.Page, error) {
	f.await()
	return f.Follower.Next(ctx)
}

type awaitedShard struct {
	journal.ShardFollower
	await func()
}

func (f awaitedShard) Next(ctx context.Context) ([]journal.Commit, error) {
	f.await()
	return f.ShardFollower.Next(ctx)
}

// awaits returns a function that waits until a node has everything that the leader has.
func (d *duo) awaits(e *cluster.Engine, shard int) func() {
	return func() {
		d.mu.Lock()
		want := d.rigs[d.at].engine.Status()[shard].Seq
		d.mu.Unlock()
		for e.Status()[shard].Seq < want && e.Health().State != journal.Closed {
			runtime.Gosched()
		}
	}
}

// leads returns the node that leads now.
func (d *duo) leads() *rig {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rigs[d.at]
}

func (d *duo) following() *cluster.Engine { return d.leads().engine }

func (d *duo) Follow(ctx context.Context, log journal.LogName, after journal.Position) (journal.Follower, error) {
	e := d.following()
	f, err := e.Follow(ctx, log, after)
	if err != nil {
		return nil, err
	}
	return awaitedLog{f, d.awaits(e, e.Shard(log.Of()))}, nil
}

func (d *duo) FollowShard(ctx context.Context, shard int, after journal.ShardPosition) (journal.ShardFollower, error) {
	e := d.following()
	f, err := e.FollowShard(ctx, shard, after)
	if err != nil {
		return nil, err
	}
	return awaitedShard{f, d.awaits(e, shard)}, nil
}

// PutSnapshot ends the takeovers: snapshots are local to a node.
func (d *duo) PutSnapshot(ctx context.Context, key journal.ValueKey, s journal.Snapshot) error {
	d.quiet(1)
	defer d.turn(false)()
	return d.Engine.PutSnapshot(ctx, key, s)
}

// Checkpoint ends the takeovers: each node has its own disk.
func (d *duo) Checkpoint(ctx context.Context, dir string) (journal.StorePosition, error) {
	d.quiet(1)
	defer d.turn(false)()
	return d.Engine.Checkpoint(ctx, dir)
}

func (d *duo) Place(ctx context.Context, shard int) (journal.Place, error) {
	defer d.turn(false)()
	return d.Engine.Place(ctx, shard)
}

func (d *duo) Confirm(ctx context.Context, shard int) error {
	defer d.turn(false)()
	return d.Engine.Confirm(ctx, shard)
}

func (d *duo) Lead(shard int) (bool, string, <-chan struct{}) { return d.following().Lead(shard) }

func (d *duo) Logs(ctx context.Context, p journal.PartitionName, opts journal.LogsOptions) (journal.LogsPage, error) {
	defer d.turn(true)()
	return d.Engine.Logs(ctx, p, opts)
}

func (d *duo) Values(ctx context.Context, p journal.PartitionName, opts journal.ValuesOptions) (journal.ValuesPage, error) {
	defer d.turn(true)()
	return d.Engine.Values(ctx, p, opts)
}

func (d *duo) Snapshot(ctx context.Context, key journal.ValueKey, version uint64) (*journal.Snapshot, error) {
	defer d.turn(false)()
	return d.Engine.Snapshot(ctx, key, version)
}

func (d *duo) DropSnapshot(ctx context.Context, key journal.ValueKey) error {
	defer d.turn(false)()
	return d.Engine.DropSnapshot(ctx, key)
}

func (d *duo) RebuildIndex(ctx context.Context) error {
	defer d.turn(false)()
	return d.Engine.RebuildIndex(ctx)
}

func (d *duo) Shards() int                       { return len(d.following().Status()) }
func (d *duo) Shard(p journal.PartitionName) int { return d.following().Shard(p) }
func (d *duo) Health() journal.Health            { return d.following().Health() }
func (d *duo) Failed() <-chan struct{}           { return d.following().Failed() }
func (d *duo) Stats() journal.Stats              { return d.following().Stats() }

func (d *duo) Close() error {
	d.mu.Lock()
	left := d.left
	d.left = true
	select {
	case <-d.stop:
	default:
		close(d.stop)
	}
	d.mu.Unlock()
	leads := d.following()
	err := leads.Close()
	other := d.rigs[0].engine
	if other == leads {
		other = d.rigs[1].engine
	}
	if other := other.Close(); err == nil && !left {
		err = other
	}
	d.ended.Wait()
	return err
}

func (d *duo) HoldSync() (<-chan struct{}, func()) {
	d.quiet(1)
	reached, release := d.leads().HoldSync()
	return reached, sync.OnceFunc(func() { release(); d.quiet(-1) })
}

// The next fault is injected into the node that leads now, so the lead must not change.
func (d *duo) FailWrite()     { d.quiet(1); d.leads().FailWrite() }
func (d *duo) FailSync() bool { d.quiet(1); return d.leads().FailSync() }

func (d *duo) Crash() {
	d.mu.Lock()
	d.left = true
	d.mu.Unlock()
	for _, r := range d.rigs {
		r.Crash()
	}
}

func (d *duo) LoseIndex(t testing.TB) {
	t.Helper()
	for _, r := range d.rigs {
		r.LoseIndex(t)
	}
}

func (d *duo) Reopen(t testing.TB) (journal.Engine, journaltest.Faults) {
	t.Helper()
	var again [2]rig
	for i, r := range d.rigs { // the other one leads first
		again[1-i] = *r
		if r.lost != nil {
			again[1-i].mem = r.lost
		}
	}
	return openDuo(t, again, d.taken)
}

// Restore starts with a restored node and a new one.
func (d *duo) Restore(t testing.TB, dir string) (journal.Engine, journaltest.Faults) {
	t.Helper()
	restored := d.leads().restored(t, dir)
	second := restored
	second.node, second.mem = fmt.Sprint("n", clusters.Add(1)), vfs.NewCrashableMem()
	return openDuo(t, [2]rig{restored, second}, d.taken)
}
