package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/cluster/internal/fakelog"
)

// peers are nodes that give each other their copies.
type peers struct {
	mu     sync.Mutex
	nodes  map[string]*node
	spoil  func([]byte) []byte // changes an archive on its way; nil: unchanged
	given  int
	refuse bool
}

func (p *peers) options(o *cluster.Options) {
	o.Address = "at " + o.Node
	o.Fetch = func(ctx context.Context, from cluster.Node, shard int) (io.ReadCloser, error) {
		p.mu.Lock()
		n, spoil, refuse := p.nodes[from.Name], p.spoil, p.refuse
		p.mu.Unlock()
		if refuse || n == nil || from.Address != "at "+from.Name {
			return nil, errors.New("refused")
		}
		var archive bytes.Buffer
		if err := n.WriteCopy(ctx, shard, &archive); err != nil {
			return nil, err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.given++
		if spoil != nil {
			return io.NopCloser(bytes.NewReader(spoil(archive.Bytes()))), nil
		}
		return io.NopCloser(&archive), nil
	}
}

func (p *peers) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.given
}

func (p *peers) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *peers) open(t *testing.T, fs *vfs.MemFS, name string, logs *fakelog.Logs) *node {
	t.Helper()
	n := openOn(t, fs, name, logs.Connect(), p.options)
	p.set(func() { p.nodes[name] = n })
	return n
}

// TestANodeTakesACopy: a new node, and one that is behind a purge, take the copy
// of another node, then read the rest of the log, and can lead.
func TestANodeTakesACopy(t *testing.T) {
	t.Parallel()
	logs, p := fakelog.New(1), &peers{nodes: map[string]*node{}}
	a, b := p.open(t, vfs.NewCrashableMem(), "a", logs), p.open(t, vfs.NewCrashableMem(), "b", logs)
	a.take().write("1", "2", "3")
	b.reaches(a.Reached(0))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	a.write("4", "5", "6")
	logs.Purge(0, 6)
	b = p.open(t, b.fs, "b", logs) // it has messages up to 4
	c := p.open(t, vfs.NewCrashableMem(), "c", logs)
	a.write("7")
	all := []string{"1", "2", "3", "4", "5", "6", "7"}
	for _, n := range []*node{b, c} {
		n.reaches(a.Reached(0))
		n.has(all...)
		n.until("the end of the trouble", func() bool { return n.Trouble(0) == nil })
	}
	if p.count() != 2 {
		t.Fatalf("%d copies were given", p.count())
	}
	c.take().write("8")
	// The taken copy is durable.
	crashed := c.fs.CrashClone(vfs.CrashCloneCfg{})
	_ = c.Close()
	c = p.open(t, crashed, "c", logs)
	b.take().write("9")
	c.reaches(b.Reached(0))
	c.has(append(all, "8", "9")...)
	for _, n := range c.Nodes() {
		if n.Address != "at "+n.Name {
			t.Errorf("node %s is at %q", n.Name, n.Address)
		}
	}
}

// TestANewNodeOfALongLog: the node takes a copy although the log has everything; if no
// node gives one, it reads the log.
func TestANewNodeOfALongLog(t *testing.T) {
	t.Parallel()
	logs, p := fakelog.New(1), &peers{nodes: map[string]*node{}}
	a := p.open(t, vfs.NewCrashableMem(), "a", logs).take()
	a.write("1")
	for range cluster.LongRead {
		logs.Put(0, []byte("foreign"))
	}
	a.until("the end of the lead", func() bool { mine, _, _ := a.Lead(0); return !mine })
	a.take().write("2")
	p.set(func() { p.refuse = true })
	c := p.open(t, vfs.NewCrashableMem(), "c", logs)
	c.reaches(a.Reached(0))
	c.has("1", "2")
	if c.Voids() < cluster.LongRead || p.count() != 0 {
		t.Fatalf("%d foreign messages were read, %d copies given", c.Voids(), p.count())
	}
	p.set(func() { p.refuse = false })
	d := p.open(t, vfs.NewCrashableMem(), "d", logs)
	d.reaches(a.Reached(0))
	d.has("1", "2")
	if d.Voids() != 0 || p.count() != 1 {
		t.Fatalf("%d foreign messages were read, %d copies given", d.Voids(), p.count())
	}
}

// TestACopyThatIsNone: a received copy is checked before it replaces the node's own.
func TestACopyThatIsNone(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func([]byte) []byte{
		"nothing":  func([]byte) []byte { return nil },
		"cut":      func(b []byte) []byte { return b[:len(b)/2] },
		"flipped":  func(b []byte) []byte { b[len(b)/3] ^= 1; return b },
		"no words": func([]byte) []byte { return []byte(strings.Repeat("no ", 1000)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logs, p := fakelog.New(1), &peers{nodes: map[string]*node{}}
			a, b := p.open(t, vfs.NewCrashableMem(), "a", logs), p.open(t, vfs.NewCrashableMem(), "b", logs)
			a.take().write("1", "2")
			b.reaches(a.Reached(0))
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			a.write("3", "4")
			logs.Purge(0, 5)
			p.set(func() { p.spoil = spoil })
			b = p.open(t, b.fs, "b", logs)
			_ = fails[*cluster.BehindError](b)
			b.until("two tries", func() bool { return p.count() >= 2 })
			b.has("1", "2")
			p.set(func() { p.spoil = nil })
			b.reaches(a.Reached(0))
			b.has("1", "2", "3", "4")
		})
	}
}

// TestANewEpoch: new logs are made from the copies of one node; the other nodes take
// its copies, and keep their old ones aside.
func TestANewEpoch(t *testing.T) {
	t.Parallel()
	logs, p := fakelog.New(1), &peers{nodes: map[string]*node{}}
	a, b := p.open(t, vfs.NewCrashableMem(), "a", logs), p.open(t, vfs.NewCrashableMem(), "b", logs)
	a.take().write("1", "2")
	b.reaches(a.Reached(0))
	logs.Truncate(0, 2)
	_ = fails[*cluster.WentBackError](b)
	for _, n := range []*node{a, b} {
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cluster.NewEpoch(a.opts.Disk, "/nowhere", 1, 1); err == nil {
		t.Fatal("a folder that is not there begins an epoch")
	}
	epoch, err := cluster.NewEpoch(a.opts.Disk, a.opts.Dir, 1, 4)
	if err != nil || epoch != 5 {
		t.Fatalf("epoch %d begins, %v", epoch, err)
	}
	anew := fakelog.New(1)
	anew.Epoch = epoch
	a, b = p.open(t, a.fs, "a", anew), p.open(t, b.fs, "b", anew)
	a.take().write("3")
	c := p.open(t, vfs.NewCrashableMem(), "c", anew)
	for _, n := range []*node{b, c} {
		n.reaches(a.Reached(0))
		n.has("1", "2", "3")
		place, err := n.Place(n.ctx, 0)
		if err != nil || place.Epoch != 5 || place.Durable != 3 {
			t.Fatalf("node %s is at %+v, %v", n.opts.Node, place, err)
		}
	}
	b.take().write("4")
	b.has("1", "2", "3", "4")
	if _, err := b.fs.Stat(cluster.Folder(b.opts.Disk, b.opts.Dir, 0) + ".before"); err != nil {
		t.Errorf("the copy of the earlier epoch is gone: %v", err)
	}
	old, err := a.FollowShard(a.ctx, 0, journal.ShardPosition{Epoch: 1, Offset: 1})
	if err == nil {
		_, err = old.Next(a.ctx)
		old.Close()
	}
	if err == nil {
		t.Error("a position of the earlier epoch is taken")
	}
}
