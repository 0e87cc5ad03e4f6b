//go:build unix

package cluster_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/parley-hub/parley/internal/natsproc"
	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster/jetstream"
)

// site is three servers and some nodes, each a process, that are killed, paused and
// cut off from each other.
type site struct {
	t       *testing.T
	ctx     context.Context
	servers *natsproc.Cluster
	nodes   []*child
	ways    [][]*natsproc.Proxy // from each node to each server
	log     *jetstream.Log
	rng     *rand.Rand
	acked   atomic.Int64
}

func processes(t *testing.T, o natsproc.Options) (context.Context, *natsproc.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	o.Servers, o.Dir = 3, t.TempDir()
	c, err := natsproc.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return ctx, c
}

// newSite starts servers, and nodes with their data in the given folders.
func newSite(t *testing.T, seed uint64, o natsproc.Options, folders ...string) *site {
	t.Helper()
	s := &site{t: t, rng: rand.New(rand.NewPCG(seed, 7))}
	s.ctx, s.servers = processes(t, o)
	var err error
	if s.log, err = jetstream.Connect(jetstream.Options{URL: s.servers.URLs(), Cluster: "site"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.log.Close)
	if err := s.log.Create(s.ctx, 1, 3, 1); err != nil {
		t.Fatal(err)
	}
	for i, dir := range folders {
		var ways []*natsproc.Proxy
		var urls []string
		for j := range 3 {
			p, err := natsproc.NewProxy(s.ctx, s.servers.Address(j))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			ways, urls = append(ways, p), append(urls, "nats://"+p.Address())
		}
		s.ways = append(s.ways, ways)
		n := &child{t: t, config: nodeConfig{URL: strings.Join(urls, ","), Cluster: "site", Dir: dir, Node: fmt.Sprint("node", i)}}
		n.begin()
		t.Cleanup(n.kill)
		s.nodes = append(s.nodes, n)
	}
	return s
}

// while waits for a random time between least and most.
func (s *site) while(least, most time.Duration) {
	select {
	case <-time.After(least + time.Duration(s.rng.Int64N(int64(most-least)))):
	case <-s.ctx.Done():
		s.t.Fatal("out of time")
	}
}

// progress waits for acknowledged writes.
func (s *site) progress(after string) {
	s.t.Helper()
	began, want := time.Now(), s.acked.Load()+10
	for s.acked.Load() < want {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-s.ctx.Done():
			s.t.Fatalf("nothing is acknowledged after %s", after)
		}
	}
	s.t.Logf("%v after %s there are more", time.Since(began).Round(time.Millisecond), after)
}

// leader returns the node that leads: the first one on which a read succeeds.
func (s *site) leader() *child {
	for {
		for _, n := range s.nodes {
			if f := n.do(deed{On: "log", Read: true}); f.How == "done" {
				return n
			}
		}
		s.while(time.Millisecond, 20*time.Millisecond)
	}
}

// faults are the faults of the tests. Each of them also ends what it began.
var faults = []struct {
	name string
	do   func(s *site)
}{
	{"the leader was killed", func(s *site) {
		n := s.leader()
		n.kill()
		s.progress("kill -9 of the leader")
		n.begin()
	}},
	{"a server was cut off", func(s *site) {
		i := s.rng.IntN(3)
		s.servers.Cut(i, true)
		for s.servers.Routes(s.ctx, i) != 0 { // the cut took effect
			s.while(time.Millisecond, 50*time.Millisecond)
		}
		s.while(2*time.Second, 5*time.Second)
		s.servers.Cut(i, false)
	}},
	{"the leader was paused", func(s *site) {
		n := s.leader()
		n.pause()
		s.while(500*time.Millisecond, 4*time.Second)
		n.signal(syscall.SIGCONT)
	}},
	{"a server was killed", func(s *site) {
		i := s.rng.IntN(3)
		s.servers.Kill(i)
		s.while(time.Millisecond, 3*time.Second)
		if err := s.servers.Again(i); err != nil {
			s.t.Error(err)
		}
	}},
	{"a server was paused", func(s *site) {
		i := s.rng.IntN(3)
		if err := s.servers.Pause(i); err != nil {
			s.t.Error(err)
		}
		s.while(500*time.Millisecond, 12*time.Second)
		if err := s.servers.Resume(i); err != nil {
			s.t.Error(err)
		}
	}},
	{"the leader was cut off from all servers", func(s *site) {
		n := s.leader()
		ways := s.ways[slices.Index(s.nodes, n)]
		for _, p := range ways {
			p.Cut(true)
		}
		if f := n.do(deed{On: "log", Read: true}); f.How == "done" {
			s.t.Error("a leader without servers confirms: the cut had no effect")
		}
		s.while(time.Millisecond, 4*time.Second)
		for _, p := range ways {
			p.Cut(false)
		}
	}},
	{"all nodes were killed", func(s *site) {
		for _, n := range s.nodes {
			n.kill()
		}
		for _, n := range s.nodes {
			n.begin()
		}
	}},
}

// TestHistoriesUnderFaults: clients write through three nodes that compete for a
// shard while nodes and servers are killed, paused and cut off. What the clients
// saw is linearizable; every acknowledged write is there once, at its sequence;
// nothing of an old term follows a fence; all copies are the same.
func TestHistoriesUnderFaults(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := newSite(t, seed, natsproc.Options{}, t.TempDir(), t.TempDir(), t.TempDir())
	h := s.clients(seed)
	s.progress("the beginning")
	for i := range 3 * scale.N(1) {
		which := i
		if i >= len(faults) {
			which = s.rng.IntN(len(faults))
		}
		faults[which].do(s)
		s.progress(faults[which].name)
	}
	s.check(h.end())
}

// check checks what the clients saw against itself, the copies and the log.
func (s *site) check(operations []porcupine.Operation) {
	s.t.Helper()
	if result := porcupine.CheckOperationsTimeout(faultModel.ToModel(), operations, time.Minute); result != porcupine.Ok {
		s.t.Errorf("the history of %d operations is %v", len(operations), result)
	}
	s.compare(operations)
	unknown := 0
	for _, op := range operations {
		if op.Output.(fate).How == "unknown" {
			unknown++
		}
	}
	s.t.Logf("%d operations, %d of them unknown", len(operations), unknown)
}

// compare compares the copies with each other, with the log, and with what was
// acknowledged.
func (s *site) compare(operations []porcupine.Operation) {
	t := s.t
	t.Helper()
	state, err := s.log.State(s.ctx, 0)
	for err != nil && s.ctx.Err() == nil {
		state, err = s.log.State(s.ctx, 0)
	}
	copies := s.copies(state.Last)
	for i, f := range copies[1:] {
		if diff := cmp.Diff(copies[0].Copy, f.Copy); diff != "" {
			t.Errorf("at message %d the copies of nodes 0 and %d differ (-0 +%d):\n%s", f.Seq, i+1, i+1, diff)
		}
	}
	records, found := copies[0].Copy.Records, map[string]int{}
	for _, data := range records {
		found[string(data)]++
	}
	for _, op := range operations {
		d, f := op.Input.(deed), op.Output.(fate)
		if d.On != "log" || d.Read || f.How != "done" {
			continue
		}
		id := fmt.Sprint(d.ID)
		if f.Number > uint64(len(records)) || string(records[f.Number-1]) != id || found[id] != 1 {
			t.Errorf("%s was acknowledged as record %d, and is there %d times", id, f.Number, found[id])
		}
	}
	for id, n := range found {
		if n != 1 {
			t.Errorf("record %s is there %d times", id, n)
		}
	}
	verify(t, storedIn(t, s.log, state.Last))
}

// copies returns the copies of all nodes at the same message, which is not before
// least.
func (s *site) copies(least uint64) []fate {
	s.t.Helper()
	for {
		var all []fate
		for _, n := range s.nodes {
			if f := n.do(deed{On: "copy"}); f.How == "done" && f.Seq >= least && (len(all) == 0 || f.Seq == all[0].Seq) {
				all = append(all, f)
			}
		}
		if len(all) == len(s.nodes) {
			return all
		}
		s.while(time.Millisecond, 50*time.Millisecond)
	}
}

// recorder is the history of the clients.
type recorder struct {
	stop       chan struct{}
	wg         sync.WaitGroup
	mu         sync.Mutex
	operations []porcupine.Operation
}

func (r *recorder) end() []porcupine.Operation {
	close(r.stop)
	r.wg.Wait()
	return r.operations
}

// clients starts clients that write and read through all nodes.
func (s *site) clients(seed uint64) *recorder {
	r := &recorder{stop: make(chan struct{})}
	var ids atomic.Uint64
	for c := range 4 {
		rng := rand.New(rand.NewPCG(seed, uint64(c)))
		r.wg.Go(func() {
			known := map[string]fate{}
			for {
				select {
				case <-r.stop:
					return
				case <-time.After(time.Duration(rng.IntN(40)) * time.Millisecond): // so that histories stay short
				}
				on := []string{"log", "claim", "value"}[rng.IntN(3)]
				d := deed{On: on, Read: rng.IntN(4) == 0, Free: rng.IntN(2) == 0, Who: c + 1, ID: ids.Add(1), Known: known[on].Number, Expect: known[on].Number}
				if on == "value" {
					d.Expect = known[on].Version
				}
				called := time.Now().UnixNano()
				f := s.nodes[rng.IntN(3)].do(d)
				returned := time.Now().UnixNano()
				switch {
				case f.How == "none", f.How == "unknown" && d.Read:
					continue
				case f.How == "unknown":
					returned = math.MaxInt64
					delete(known, on)
				case f.How == "refused" && on == "value":
					if look := s.nodes[rng.IntN(3)].do(deed{On: on, Read: true}); look.How == "done" {
						known[on] = look
					}
				default:
					known[on] = f
				}
				if f.How == "done" && !d.Read {
					s.acked.Add(1)
				}
				r.mu.Lock()
				r.operations = append(r.operations, porcupine.Operation{ClientId: c, Input: d, Call: called, Output: f, Return: returned})
				r.mu.Unlock()
			}
		})
	}
	return r
}

var faultModel = porcupine.NondeterministicModel{
	Partition: byThing(func(input any) string { return input.(deed).On }),
	Init:      func() []any { return []any{uint64(0)} },
	Step: func(state, input, output any) []any {
		at, d, f := state.(uint64), input.(deed), output.(fate)
		if d.Read {
			if f.Number != at {
				return nil
			}
			return []any{at}
		}
		applies, next := at == d.Known, d.ID
		switch {
		case d.On == "log":
			applies, next = at == d.Expect, at+1
		case d.On == "claim" && d.Free:
			applies, next = true, at
			if at == uint64(d.Who) {
				next = 0
			}
		case d.On == "claim":
			applies, next = at == 0, uint64(d.Who)
		}
		switch {
		case f.How == "unknown" && applies && next != at:
			return []any{at, next}
		case f.How == "unknown":
			return []any{at}
		case f.How == "done" && applies && (d.On != "log" || f.Number == next):
			return []any{next}
		case f.How == "refused" && !applies && (d.On == "value" || f.Number == at):
			return []any{at}
		}
		return nil
	},
	Equal: func(a, b any) bool { return a == b },
}

// unmoving is a log that does not move to another server.
type unmoving struct{ *jetstream.Log }

func (unmoving) Elsewhere(int) {}

// TestAServerThatIsCutOff: a node whose server is cut off from the others continues
// to write through another one. Without Elsewhere it waits as long as the cut lasts.
func TestAServerThatIsCutOff(t *testing.T) {
	t.Parallel()
	ctx, servers := processes(t, natsproc.Options{})
	connect := func(name string) *jetstream.Log {
		log, err := jetstream.Connect(jetstream.Options{URL: servers.URLs(), Cluster: name, NATS: []nats.Option{nats.DontRandomize(), nats.IgnoreDiscoveredServers()}})
		if err != nil {
			t.Fatal(err)
		}
		return log
	}
	var nodes []*node
	moving := connect("with")
	for _, name := range []string{"with", "without"} {
		log := connect(name)
		if err := log.Create(ctx, 1, 3, 1); err != nil {
			t.Fatal(err)
		}
		log.Close()
	}
	nodes = append(nodes, openNode(t, "a", moving), openNode(t, "b", unmoving{connect("without")}))
	for _, n := range nodes {
		n.take().write("before")
	}
	own := moving.Server()
	cut := slices.IndexFunc([]int{0, 1, 2}, func(i int) bool { return servers.Name(i) == own })
	servers.Cut(cut, true)
	nodes[0].until("the cut", func() bool { return servers.Routes(ctx, cut) == 0 })
	began := time.Now()
	waits := nodes[1].order("meanwhile")
	nodes[0].write("meanwhile")
	with := time.Since(began)
	if now := moving.Server(); now == own || now == "" {
		t.Errorf("the node is on server %q", now)
	}
	nodes[0].write("still cut off")
	if o := waits.Outcome(); o != journal.Pending {
		t.Errorf("without the rule the write ended %v", o)
	}
	if servers.Routes(ctx, cut) != 0 {
		t.Error("the cut has no effect")
	}
	servers.Cut(cut, false)
	if err := waits.Wait(ctx); err != nil {
		t.Error(err)
	}
	t.Logf("the pause is %v with the rule, %v without it, where the cut lasted %v", with, time.Since(began), with)
	nodes[0].has("before", "meanwhile", "still cut off")
	nodes[1].has("before", "meanwhile")
}
