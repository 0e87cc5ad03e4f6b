package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/cluster/internal/frame"
	"github.com/parley-hub/parley/journal/cluster/port"
	"github.com/parley-hub/parley/journal/disk"
)

var history = journal.PartitionName{Tenant: "acme", Partition: "home"}.In("log", "history")

// node is an engine with its own store that leads only after take.
type node struct {
	*cluster.Engine
	t    testing.TB
	ctx  context.Context
	fs   *vfs.MemFS
	opts cluster.Options
}

func openNode(t testing.TB, name string, log port.Log, change ...func(*cluster.Options)) *node {
	t.Helper()
	return openOn(t, vfs.NewCrashableMem(), name, log, change...)
}

func openOn(t testing.TB, fs *vfs.MemFS, name string, log port.Log, change ...func(*cluster.Options)) *node {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	o := cluster.Options{
		Dir: "/data", Node: name, Log: log, Shards: 1, Manual: true, Poll: 20 * time.Millisecond, Suspect: 100 * time.Millisecond,
		Disk: disk.Options{FS: fs, MemTableSize: 1 << 20, CacheBytes: 1 << 20},
	}
	for _, f := range change {
		f(&o)
	}
	e, err := cluster.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{Engine: e, t: t, ctx: ctx, fs: fs, opts: o}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// take makes the node lead.
func (n *node) take() *node {
	n.t.Helper()
	if err := n.Acquire(n.ctx); err != nil {
		n.t.Fatal(err)
	}
	return n
}

func text(s string) journal.Batch {
	return journal.Batch{Appends: []journal.Append{{Log: history, Records: []journal.Record{{Data: []byte(s)}}}}}
}

func (n *node) order(s string) *journal.Ticket {
	n.t.Helper()
	ticket, err := n.Append(n.ctx, text(s))
	if err != nil {
		n.t.Fatal(err)
	}
	return ticket
}

func (n *node) write(texts ...string) {
	n.t.Helper()
	for _, s := range texts {
		if err := n.order(s).Wait(n.ctx); err != nil {
			n.t.Fatal(err)
		}
	}
}

// texts returns the records of the history.
func (n *node) texts() (out []string) {
	n.t.Helper()
	for entry, err := range journal.Records(n.ctx, n.Engine, history, journal.ReadOptions{}) {
		if err != nil {
			n.t.Fatal(err)
		}
		out = append(out, string(entry.Data))
	}
	return out
}

func (n *node) has(want ...string) {
	n.t.Helper()
	if diff := cmp.Diff(want, n.texts()); diff != "" {
		n.t.Fatalf("node %s has another history (-want +got):\n%s", n.opts.Node, diff)
	}
}

// until waits until happened returns true.
func (n *node) until(what string, happened func() bool) {
	n.t.Helper()
	for !happened() {
		select {
		case <-n.ctx.Done():
			n.t.Fatalf("node %s: %s did not happen; trouble: %v", n.opts.Node, what, n.Trouble(0))
		case <-time.After(time.Millisecond):
		}
	}
}

// reaches waits until the node has applied a sequence.
func (n *node) reaches(seq uint64) {
	n.t.Helper()
	n.until(fmt.Sprintf("message %d", seq), func() bool { return n.Reached(0) >= seq })
}

// fails waits for the error that keeps the node from following.
func fails[E error](n *node) (found E) {
	n.t.Helper()
	n.until(fmt.Sprintf("%T", found), func() bool { return errors.As(n.Trouble(0), &found) })
	if !errors.Is(found, journal.ErrDamaged) {
		n.t.Fatalf("%v is no damage", found)
	}
	if h := n.Health(); h.State != journal.Waiting || h.Err == nil {
		n.t.Fatalf("health is %v", h)
	}
	var notMine *journal.NotMineError
	if _, err := n.Append(n.ctx, text("x")); !errors.As(err, &notMine) {
		n.t.Fatalf("an append is answered with %v", err)
	}
	return found
}

// outcome waits for a ticket and returns its outcome.
func (n *node) outcome(ticket *journal.Ticket) journal.Outcome {
	n.t.Helper()
	select {
	case <-ticket.Done():
	case <-n.ctx.Done():
		n.t.Fatal("a ticket does not end")
	}
	return ticket.Outcome()
}

// verify checks the invariants of a whole log: every message that is not foreign
// follows the one before it, and comes after the fence of its own term.
func verify(t testing.TB, messages [][]byte) {
	t.Helper()
	var chain frame.Chain
	term := uint64(0)
	for i, data := range messages {
		m, err := frame.Decode(data)
		if err != nil {
			continue
		}
		seq := uint64(i + 1)
		if m.Kind == frame.Fence {
			term = seq
		}
		if m.Term != term {
			t.Fatalf("message %d, a %v of term %d, stands behind the fence of term %d", seq, m.Kind, m.Term, term)
		}
		if chain.Next(m.Kind, m.Term, m.Body) != m.Chain {
			t.Fatalf("message %d does not follow the one before it", seq)
		}
		chain = m.Chain
	}
}
