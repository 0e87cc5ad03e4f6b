package cluster_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/cluster/internal/fakelog"
	"github.com/parley-hub/parley/journal/cluster/port"
)

// TestLeadIsHandedOn: nodes agree on the leader and report its address; another node
// takes over when the leader dies, and the named node when the leader hands over.
func TestLeadIsHandedOn(t *testing.T) {
	t.Parallel()
	logs := fakelog.New(1)
	nodes, lines := map[string]*node{}, map[string]*line{}
	for _, name := range []string{"a", "b", "c"} {
		lines[name] = &line{Log: logs.Connect()}
		nodes[name] = openNode(t, name, lines[name], func(o *cluster.Options) {
			o.Manual, o.Suspect, o.Address, o.Version = false, 600*time.Millisecond, "http://"+name, "v1"
		})
	}
	some := nodes["a"]
	leads := func(but string) (leader *node) {
		some.until("a leader", func() bool {
			for name, n := range nodes {
				if mine, _, _ := n.Lead(0); mine && name != but {
					leader = n
				}
			}
			return leader != nil
		})
		return leader
	}
	first := leads("")
	first.write("1")
	for _, n := range nodes {
		n.until("all know all", func() bool {
			m, ok := n.Leader()
			return ok && len(n.Nodes()) == 3 && m.Name == first.opts.Node && m.Address == first.opts.Address &&
				m.Version == "v1" && !m.Since.IsZero() && slices.Equal(m.Offsets, []uint64{1})
		})
	}

	// The leader is cut off from the others, which looks like its death.
	lost, err := first.Led(first.ctx)
	if err != nil {
		t.Fatal(err)
	}
	lines[first.opts.Node].cut.Store(true)
	second := leads(first.opts.Node)
	second.write("2")
	lines[first.opts.Node].cut.Store(false)
	<-lost
	second.has("1", "2")

	// The leader hands over to the named node.
	survey, err := cluster.Survey(t.Context(), logs.Connect(), time.Second)
	if err != nil || len(survey) != 3 {
		t.Fatalf("a survey finds %v, %v", survey, err)
	}
	if err := cluster.AskMove(logs.Connect(), first.opts.Node); err != nil {
		t.Fatal(err)
	}
	if to := <-second.Asked(); to != first.opts.Node {
		t.Fatalf("asked to move to %q", to)
	}
	second.Hold(second.ctx, true)
	second.HandOver(first.opts.Node)
	if _, err := first.Led(first.ctx); err != nil {
		t.Fatal(err)
	}
	second.Hold(second.ctx, false)

	// The leader closes, and another node leads.
	first.write("3")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	leads(first.opts.Node).has("1", "2", "3")
}

// TestTakingOverInTime: of nodes that have stood by for a while and know the leader,
// one takes over long before twice Suspect, because opening a hub takes time, too.
func TestTakingOverInTime(t *testing.T) {
	t.Parallel()
	const suspect = 3 * time.Second
	name := natsServers{}.create(t, 1, 1)
	lines, nodes := map[string]*line{}, map[string]*node{}
	for _, n := range []string{"a", "b", "c"} {
		lines[n] = &line{Log: dial(t, name)}
		nodes[n] = openNode(t, n, lines[n], func(o *cluster.Options) { o.Manual, o.Suspect = false, suspect })
	}
	leads := func(but string) (name string) {
		nodes["a"].until("a leader", func() bool {
			for n, one := range nodes {
				if mine, _, _ := one.Lead(0); mine && n != but {
					name = n
				}
			}
			return name != ""
		})
		return name
	}
	first := leads("")
	for began := time.Now(); time.Since(began) < suspect; {
		for _, n := range nodes {
			n.until("the leader's beat", func() bool { m, ok := n.Leader(); return ok && m.Name == first })
		}
	}
	lines[first].cut.Store(true)
	died := time.Now()
	next := leads(first)
	pause := time.Since(died)
	t.Logf("node %s leads after %v", next, pause)
	if pause > suspect*8/5 {
		t.Errorf("that is too late; a node is suspected after %v", suspect)
	}
}

// TestTwins: two processes with one name know of each other.
func TestTwins(t *testing.T) {
	t.Parallel()
	logs := fakelog.New(1)
	one := openNode(t, "a", logs.Connect())
	if err := one.Twin(); err != nil {
		t.Fatal(err)
	}
	two := openNode(t, "a", logs.Connect())
	one.until("the other is known", func() bool { return one.Twin() != nil && two.Twin() != nil })
}

// TestATwinDoesNotTakeTheLead: a process that is started with the name of the node that
// leads leaves it the lead, although nothing is written, and so do the others.
func TestATwinDoesNotTakeTheLead(t *testing.T) {
	t.Parallel()
	logs := fakelog.New(1)
	leading := func(o *cluster.Options) { o.Manual, o.Suspect = false, time.Second }
	one := openNode(t, "a", logs.Connect(), leading)
	lost, err := one.Led(one.ctx)
	if err != nil {
		t.Fatal(err)
	}
	two := openNode(t, "a", logs.Connect(), leading)
	openNode(t, "b", logs.Connect(), leading)
	two.until("the other is known", func() bool { return two.Twin() != nil })
	for began := time.Now(); time.Since(began) < 2*two.opts.Suspect; {
		two.until("a beat", func() bool { return two.Twin() != nil })
		select {
		case <-lost:
			t.Fatalf("the lead was lost after %v", time.Since(began))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// line is a connection that can be cut.
type line struct {
	port.Log
	cut atomic.Bool
}

func (l *line) Append(ctx context.Context, shard int, after uint64, data []byte) error {
	if l.cut.Load() {
		return errGate
	}
	return l.Log.Append(ctx, shard, after, data)
}

func (l *line) Beat(data []byte) error {
	if l.cut.Load() {
		return errGate
	}
	return l.Log.Beat(data)
}

func (l *line) Tail(shard int, push func(port.Message)) (func(), error) {
	return l.Log.Tail(shard, func(m port.Message) {
		if !l.cut.Load() {
			push(m)
		}
	})
}

func (l *line) Read(ctx context.Context, shard int, from uint64) ([]port.Message, error) {
	if l.cut.Load() {
		return nil, errGate
	}
	return l.Log.Read(ctx, shard, from)
}

// mute is a connection whose beats are lost.
type mute struct{ port.Log }

func (mute) Beat([]byte) error { return nil }

// TestALeaderThatWritesIsNotSuspected: if a leader's beats are lost, its messages in
// the log are signs of life, also those that a node finds just before it takes over.
// When the leader stops writing, another node leads.
func TestALeaderThatWritesIsNotSuspected(t *testing.T) {
	t.Parallel()
	const suspect = 300 * time.Millisecond
	logs := fakelog.New(1)
	a := openNode(t, "a", mute{logs.Connect()}).take()
	b := openNode(t, "b", logs.Connect(), func(o *cluster.Options) { o.Manual, o.Suspect = false, suspect })
	var last time.Time
	for began := time.Now(); time.Since(began) < 4*suspect; last = time.Now() {
		ticket, err := a.Append(a.ctx, text("x"))
		if err == nil {
			err = ticket.Wait(a.ctx)
		}
		if err != nil && (last.IsZero() || time.Since(last) < suspect) {
			t.Fatalf("it was replaced %v after it wrote: %v", time.Since(last), err)
		}
		if err != nil {
			return // this machine paused: the suspicion was justified
		}
	}
	b.until("its turn", func() bool { mine, _, _ := b.Lead(0); return mine })
}
