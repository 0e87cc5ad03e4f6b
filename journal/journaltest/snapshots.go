package journaltest

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/parley-hub/parley/journal"
)

var snapshotCases = []testCase{
	{"a snapshot is returned for its version", snapshotKept},
	{"a snapshot may be large", snapshotLarge},
	{"a snapshot ahead of its logs is none", snapshotAhead},
	{"a snapshot of a log that was dropped is none", snapshotOfDropped},
	{"a snapshot of another epoch is none", snapshotEpoch},
	{"dropping a partition removes its snapshots", snapshotPartition},
	{"a snapshot that breaks a bound is refused", snapshotBounds},
}

func (r *rig) snapshot(k journal.ValueKey, version uint64) *journal.Snapshot {
	r.t.Helper()
	s, err := r.Snapshot(r.ctx, k, version)
	need(r.t, err)
	return s
}

func (r *rig) snapshotOf(version uint64, data string, logs ...journal.LogName) journal.Snapshot {
	r.t.Helper()
	s := journal.Snapshot{Version: version, Data: []byte(data)}
	for _, log := range logs {
		head := r.head(log).Durable
		at := head.Position()
		if !head.Exists() {
			at = journal.Position{}
		}
		s.Logs = append(s.Logs, journal.LogPosition{Log: log, At: at})
	}
	return s
}

func snapshotKept(t *testing.T, open Open) {
	r := start(t, open, Options{})
	r.commit(batch(to(alpha, "1", "2")))
	place := r.place()
	equal(t, r.snapshot(key("s"), 1), nil)
	first := r.snapshotOf(1, "first", alpha, beta)
	need(t, r.PutSnapshot(r.ctx, key("s"), first))
	first.Data[0] = 'x' // the engine has a copy
	equal(t, string(r.snapshot(key("s"), 1).Data), "first")
	equal(t, r.snapshot(key("s"), 1).Logs, first.Logs)
	equal(t, r.snapshot(key("s"), 2), nil)
	equal(t, r.snapshot(key("other"), 1), nil)
	// The logs may grow, and one that did not exist may be created.
	r.commit(batch(to(alpha, "3"), to(beta, "1")))
	equal(t, string(r.snapshot(key("s"), 1).Data), "first")
	need(t, r.PutSnapshot(r.ctx, key("s"), r.snapshotOf(2, "second", alpha, beta)))
	equal(t, r.snapshot(key("s"), 1), nil)
	equal(t, string(r.snapshot(key("s"), 2).Data), "second")
	equal(t, r.place().Ordered, place.Ordered+1) // snapshots take no offset
	r.reopen()
	if s := r.snapshot(key("s"), 2); s != nil { // it may be lost, but never wrong
		equal(t, string(s.Data), "second")
	}
	need(t, r.DropSnapshot(r.ctx, key("s")))
	equal(t, r.snapshot(key("s"), 2), nil)
	need(t, r.DropSnapshot(r.ctx, key("s")))
	need(t, r.Engine.Close())
	for name, call := range map[string]func(context.Context) error{
		"PutSnapshot":  func(ctx context.Context) error { return r.PutSnapshot(ctx, key("s"), first) },
		"Snapshot":     func(ctx context.Context) error { _, err := r.Snapshot(ctx, key("s"), 1); return err },
		"DropSnapshot": func(ctx context.Context) error { return r.DropSnapshot(ctx, key("s")) },
	} {
		if err := call(r.ctx); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("%s after Close returned %v, want ErrClosed", name, err)
		}
	}
}

func snapshotLarge(t *testing.T, open Open) {
	r := start(t, open, Options{})
	r.commit(batch(to(alpha, "1")))
	s := r.snapshotOf(1, "", alpha)
	s.Data = bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // 8 MiB
	need(t, r.PutSnapshot(r.ctx, key("s"), s))
	if got := r.snapshot(key("s"), 1); got == nil || !bytes.Equal(got.Data, s.Data) {
		t.Fatal("the snapshot came back changed")
	}
}

func snapshotAhead(t *testing.T, open Open) {
	r := start(t, open, Options{})
	at := r.commit(batch(to(alpha, "1"))).Position(0)
	reached, release := r.HoldSync()
	defer release()
	lost := r.order(batch(to(alpha, "2"))).Position(0)
	r.await(reached, "a sync")
	s := journal.Snapshot{Version: 1, Logs: []journal.LogPosition{{Log: alpha, At: lost}}}
	need(t, r.PutSnapshot(r.ctx, key("s"), s))
	equal(t, r.snapshot(key("s"), 1), nil) // not while it is not durable
	r.crash()
	equal(t, r.snapshot(key("s"), 1), nil)
	s.Logs[0].At = at
	need(t, r.PutSnapshot(r.ctx, key("s"), s))
	equal(t, r.snapshot(key("s"), 1).Logs, s.Logs)
}

func snapshotOfDropped(t *testing.T, open Open) {
	r := start(t, open, Options{})
	r.commit(batch(to(alpha, "1"), to(beta, "1")))
	need(t, r.PutSnapshot(r.ctx, key("both"), r.snapshotOf(1, "both", alpha, beta)))
	need(t, r.PutSnapshot(r.ctx, key("beta"), r.snapshotOf(1, "beta", beta)))
	r.drop(alpha)
	equal(t, r.snapshot(key("both"), 1), nil)
	r.commit(batch(to(alpha, "1", "2")))
	equal(t, r.snapshot(key("both"), 1), nil)
	equal(t, string(r.snapshot(key("beta"), 1).Data), "beta")
}

func snapshotEpoch(t *testing.T, open Open) {
	r := start(t, open, Options{})
	r.commit(batch(to(alpha, "1")))
	old := r.snapshotOf(1, "old", alpha)
	dir := filepath.Join(t.TempDir(), "copy")
	_, err := r.Checkpoint(r.ctx, dir)
	need(t, err)
	r.restore(dir)
	need(t, r.PutSnapshot(r.ctx, key("s"), old))
	equal(t, r.snapshot(key("s"), 1), nil)
}

func snapshotPartition(t *testing.T, open Open) {
	r := start(t, open, Options{})
	audit, far := home.In("audit", "1"), other.In("log", "far")
	r.commit(batch(to(audit, "kept")))
	r.commit(batch(to(far, "1")))
	farKey := journal.ValueKey{Partition: other, Name: "s"}
	need(t, r.PutSnapshot(r.ctx, key("s"), r.snapshotOf(1, "gone", audit)))
	need(t, r.PutSnapshot(r.ctx, farKey, r.snapshotOf(1, "stays", far)))
	ticket, err := r.DropPartition(r.ctx, home, "audit")
	need(t, err)
	need(t, ticket.Wait(r.ctx))
	equal(t, r.texts(audit), []string{"kept"})
	equal(t, r.snapshot(key("s"), 1), nil)
	equal(t, string(r.snapshot(farKey, 1).Data), "stays")
}

func snapshotBounds(t *testing.T, open Open) {
	r := start(t, open, Options{})
	one := []journal.LogPosition{{Log: alpha}}
	for name, c := range map[string]struct {
		key  journal.ValueKey
		snap journal.Snapshot
	}{
		"no log":            {key("s"), journal.Snapshot{}},
		"too many logs":     {key("s"), journal.Snapshot{Logs: make([]journal.LogPosition, journal.MaxSnapshotLogs+1)}},
		"another partition": {key("s"), journal.Snapshot{Logs: []journal.LogPosition{{Log: other.In("log", "x")}}}},
		"no name":           {key(""), journal.Snapshot{Logs: one}},
		"no partition":      {journal.ValueKey{Name: "s"}, journal.Snapshot{Logs: one}},
		"too large":         {key("s"), journal.Snapshot{Logs: one, Data: make([]byte, journal.MaxSnapshot+1)}},
	} {
		if err := r.PutSnapshot(r.ctx, c.key, c.snap); !errors.Is(err, journal.ErrInvalid) {
			t.Errorf("%s: got error %v, want ErrInvalid", name, err)
		}
	}
	equal(t, r.snapshot(key("s"), 0), nil)
}
