package cluster_test

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/cluster/internal/fakelog"
	"github.com/parley-hub/parley/journal/cluster/internal/frame"
	"github.com/parley-hub/parley/journal/cluster/port"
)

// TestHints: a hint reaches the followers of the shard on every node, and is not
// stored.
func TestHints(t *testing.T) {
	t.Parallel()
	logs := fakelog.New(1)
	a, b := openNode(t, "a", logs.Connect()).take(), openNode(t, "b", logs.Connect())
	a.write("1")
	b.reaches(a.Reached(0))
	for _, n := range []*node{a, b} {
		place, err := n.Place(n.ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		after := journal.ShardPosition{Epoch: place.Epoch, Offset: place.Durable}
		follower, err := n.FollowShard(n.ctx, 0, after)
		if err != nil {
			t.Fatal(err)
		}
		defer follower.Close()
		hinted := text("2")
		hinted.Hint = []byte("tell them")
		if ticket, err := a.Append(a.ctx, hinted); err != nil || ticket.Wait(a.ctx) != nil {
			t.Fatal(err)
		}
		n.reaches(a.Reached(0))
		commits, err := follower.Next(n.ctx)
		if err != nil || len(commits) != 1 || string(commits[0].Hint) != "tell them" || string(commits[0].Writes[0].Entries[0].Data) != "2" {
			t.Fatalf("node %s: %+v, %v", n.opts.Node, commits, err)
		}
		b.reaches(a.Reached(0))
	}
	c := openNode(t, "c", logs.Connect())
	c.reaches(a.Reached(0))
	follower, err := c.FollowShard(c.ctx, 0, journal.ShardPosition{})
	if err != nil {
		t.Fatal(err)
	}
	defer follower.Close()
	commits, err := follower.Next(c.ctx)
	if err != nil || len(commits) != 3 || commits[2].Hint != nil {
		t.Fatalf("who comes later gets %+v, %v", commits, err)
	}
}

// TestLazyValues: the leader reads lazy values at once; they are sent with its next
// group, or soon alone, and then every node has them.
func TestLazyValues(t *testing.T) {
	t.Parallel()
	logs := fakelog.New(1)
	a, b := openNode(t, "a", logs.Connect()).take(), openNode(t, "b", logs.Connect())
	key := func(name string) journal.ValueKey { return journal.ValueKey{Partition: history.Of(), Name: name} }
	lazy := func(n *node, name string) string {
		v, err := n.LazyValue(n.ctx, key(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(v.Data)
	}
	put := func(name, data string) {
		if err := a.PutLazy(a.ctx, journal.ValueWrite{Key: key(name), Data: []byte(data)}); err != nil {
			t.Fatal(err)
		}
		if got := lazy(a, name); got != data {
			t.Fatalf("the leader reads %q", got)
		}
	}
	put("rides", "1")
	a.write("a batch")
	b.reaches(a.Reached(0))
	if got := lazy(b, "rides"); got != "1" {
		t.Fatalf("after the next group the other node reads %q", got)
	}
	put("alone", "2")
	b.until("the lazy value", func() bool { return lazy(b, "alone") == "2" })
	b.take()
	if got := lazy(b, "rides") + lazy(b, "alone"); got != "12" {
		t.Fatalf("after a takeover it is %q", got)
	}
}

// TestALargeBatch: a batch of 4 MiB goes through servers with the default max_payload,
// in parts that all nodes join.
func TestALargeBatch(t *testing.T) {
	t.Parallel()
	name := natsServers{}.create(t, 1, 1)
	log := dial(t, name)
	if most := log.MaxBytes(); most > 1<<20 {
		t.Fatalf("the servers take %d bytes at once: this test shows nothing", most)
	}
	a, b := openNode(t, "a", log).take(), openNode(t, "b", dial(t, name))
	large := text("")
	large.Appends[0].Records[0].Data = bytes.Repeat([]byte("4 MiB in all "), journal.MaxBatchBytes/13-16)
	a.write("before")
	ticket, err := a.Append(a.ctx, large)
	if err == nil {
		err = ticket.Wait(a.ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.write("after")
	want := []string{"before", string(large.Appends[0].Records[0].Data), "after"}
	a.has(want...)
	b.reaches(a.Reached(0))
	b.has(want...)
	parts := 0
	for _, data := range stored(t, name, a.Reached(0)) {
		if frame.KindOf(data) == frame.Part {
			parts++
		}
	}
	if parts < 4 {
		t.Errorf("it went in %d parts", parts)
	}
}

// pushed is a log that counts the messages pushed to a node.
type pushed struct {
	port.Log
	messages atomic.Int64
}

func (p *pushed) Tail(shard int, push func(port.Message)) (stop func(), err error) {
	return p.Log.Tail(shard, func(m port.Message) {
		p.messages.Add(1)
		push(m)
	})
}

// TestALeaderIsNotPushedWhatItWrote: a leader does not receive its own messages. It
// learns of another leader from that node's beats, long before its next read of the end
// of the log, and then receives pushed messages again.
func TestALeaderIsNotPushedWhatItWrote(t *testing.T) {
	t.Parallel()
	logs := fakelog.New(1)
	own := &pushed{Log: logs.Connect()}
	a := openNode(t, "a", own, func(o *cluster.Options) { o.Poll = 10 * patience }).take()
	a.until("no more pushes", func() bool {
		before := own.messages.Load()
		a.write("x")
		return own.messages.Load() == before
	})
	before := own.messages.Load()
	a.write("1", "2", "3")
	if got := own.messages.Load(); got != before {
		t.Errorf("%d messages of its own were pushed", got-before)
	}
	b := openNode(t, "b", logs.Connect()).take()
	a.until("another leader", func() bool { mine, node, _ := a.Lead(0); return !mine && node == "b" })
	b.write("4")
	a.reaches(b.Reached(0))
	b.write("5")
	a.until("a push", func() bool { return own.messages.Load() > before })
	a.reaches(b.Reached(0))
}
