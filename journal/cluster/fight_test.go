package cluster_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster"
)

// TestNodesFightForAShard: three nodes take the lead from each other while writers
// write through all of them. Every acknowledged write is there once, no failed write
// is there, all copies are the same, and the log keeps its invariants.
func TestNodesFightForAShard(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	name := natsServers{}.create(t, 1, 1)
	var nodes []*node
	for _, n := range []string{"a", "b", "c"} {
		nodes = append(nodes, openNode(t, n, dial(t, name)))
	}
	nodes[0].take()
	var mu sync.Mutex
	outcomes := map[string]journal.Outcome{}
	var acked atomic.Int64
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 6 {
		rng := rand.New(rand.NewPCG(seed, uint64(w)))
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				n := nodes[rng.IntN(len(nodes))]
				s := fmt.Sprintf("%d.%d", w, i)
				ticket, err := n.Append(n.ctx, text(s))
				var notMine *journal.NotMineError
				if errors.As(err, &notMine) {
					_, _, changed := n.Lead(0)
					select { // wait for a change of the leader
					case <-changed:
					case <-time.After(time.Millisecond):
					}
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				o := n.outcome(ticket)
				if o == journal.Durable {
					acked.Add(1)
				}
				mu.Lock()
				outcomes[s] = o
				mu.Unlock()
			}
		})
	}
	rng := rand.New(rand.NewPCG(seed, 99))
	for range scale.N(12) {
		more := acked.Load() + int64(rng.IntN(40))
		nodes[0].until("more writes", func() bool { return acked.Load() >= more })
		nodes[rng.IntN(len(nodes))].take()
	}
	close(stop)
	writers.Wait()
	nodes[0].take().write("the end")
	last := nodes[0].Reached(0)
	verify(t, stored(t, name, last))
	want := nodes[0].texts()
	for _, n := range nodes[1:] {
		n.reaches(last)
		if diff := cmp.Diff(want, n.texts()); diff != "" {
			t.Fatalf("node %s has another history:\n%s", n.opts.Node, diff)
		}
	}
	found := map[string]int{}
	for _, s := range want {
		found[s]++
	}
	lost := 0
	for s, o := range outcomes {
		switch {
		case o == journal.Durable && found[s] != 1:
			t.Errorf("%s was acknowledged, and is there %d times", s, found[s])
		case o == journal.Unknown:
			t.Errorf("%s ended unknown", s)
		case o != journal.Durable && found[s] != 0:
			t.Errorf("%s ended %v, and is there", s, o)
		}
		if o != journal.Durable {
			lost++
		}
	}
	if len(found) != len(want) {
		t.Error("something is there twice")
	}
	t.Logf("%d acknowledged, %d lost their leader", acked.Load(), lost)
}

// TestStandbyTakesOver: of three nodes one leads every shard; when it dies, another
// node leads, with everything that was acknowledged.
func TestStandbyTakesOver(t *testing.T) {
	t.Parallel()
	const shards = 2
	name := natsServers{}.create(t, shards, 1)
	alive := map[string]*node{}
	gates := map[string]*gate{}
	for _, n := range []string{"a", "b", "c"} {
		gates[n] = newGate(dial(t, name))
		alive[n] = openNode(t, n, gates[n], func(o *cluster.Options) {
			o.Shards, o.Manual, o.Suspect = shards, false, time.Second
		})
	}
	leader := func() (found *node) {
		for _, n := range alive {
			leads := 0
			for shard := range shards {
				if mine, _, _ := n.Lead(shard); mine {
					leads++
				}
			}
			if leads == shards {
				found = n
			}
		}
		return found
	}
	var want []string
	for round := range 2 {
		var n *node
		for _, any := range alive {
			any.until("a leader", func() bool { n = leader(); return n != nil })
			break
		}
		s := fmt.Sprint(round)
		n.until("a write", func() bool { // the lead may be lost again at once
			ticket, err := n.Append(n.ctx, text(s))
			if err != nil || ticket.Wait(n.ctx) != nil {
				if other := leader(); other != nil {
					n = other
				}
				return false
			}
			return true
		})
		want = append(want, s)
		n.has(want...)
		for _, other := range alive {
			if other != n {
				other.until("the name of the leader", func() bool { _, who, _ := other.Lead(1); return who == n.opts.Node })
			}
		}
		delete(alive, n.opts.Node)
		gates[n.opts.Node].die()
		n.Abandon()
		_ = n.Close()
	}
	var n *node
	for _, last := range alive {
		last.until("a leader", func() bool { n = leader(); return n != nil })
	}
	n.has(want...)
}
