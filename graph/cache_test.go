package graph_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/parley-hub/parley/graph"
	"github.com/parley-hub/parley/internal/scale"
)

func named(i int) []byte {
	return fmt.Appendf(nil, `{"initial_speaker":"agent-%d"}`, i)
}

func TestCacheShares(t *testing.T) {
	t.Parallel()
	c := graph.NewCache(nil, 0)
	one, err := c.Load([]byte(sample))
	equal(t, err, nil)
	two, err := c.Load([]byte(sample))
	equal(t, err, nil)
	equal(t, one == two, true)
	spaced, err := c.Load([]byte(" " + sample + "\n"))
	equal(t, err, nil)
	equal(t, one == spaced, true)
	different, err := c.Load([]byte(everything))
	equal(t, err, nil)
	equal(t, one == different, false)
	equal(t, object(t, different), everything)
	_, err = c.Load([]byte(`{}`))
	refusedWith(t, err, "graph: lacks 'initial_speaker'")
}

func TestCacheForgets(t *testing.T) {
	t.Parallel()
	c := graph.NewCache(graph.NewRegistry(graph.Limits{}), 3)
	get := func(i int) *graph.Graph {
		g, err := c.Load(named(i))
		equal(t, err, nil)
		return g
	}
	first, kept := get(0), get(1)
	get(2)
	equal(t, get(0) == first, true)
	// A second generation begins; what is used moves into it.
	get(3)
	equal(t, get(1) == kept, true)
	get(4)
	get(5)
	equal(t, get(1) == kept, true)
	equal(t, get(0) == first, false)
}

func TestCacheOfOne(t *testing.T) {
	t.Parallel()
	c := graph.NewCache(graph.NewRegistry(graph.Limits{}), 1)
	var seen []*graph.Graph
	for _, i := range []int{0, 0, 1, 2, 0} {
		g, err := c.Load(named(i))
		equal(t, err, nil)
		seen = append(seen, g)
	}
	equal(t, seen[0] == seen[1], true)
	equal(t, seen[0] == seen[4], false)
}

func TestCacheFollowsRegistrations(t *testing.T) {
	t.Parallel()
	r := graph.NewRegistry(graph.Limits{})
	c := graph.NewCache(r, 10)
	text := []byte(`{"initial_speaker":"a","default_target":{"name":"mine"}}`)
	equal(t, r.RegisterTarget(mine{}), nil)
	one, err := c.Load(text)
	equal(t, err, nil)
	equal(t, r.RegisterTarget(other{}), nil)
	two, err := c.Load(text)
	equal(t, err, nil)
	equal(t, one.Default(), graph.Target(mine{}))
	equal(t, two.Default(), graph.Target(other{}))
}

func TestCacheIsSafe(t *testing.T) {
	t.Parallel()
	c := graph.NewCache(graph.NewRegistry(graph.Limits{}), 4)
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for i := range 200 {
				g, err := c.Load(named((i + worker) % 9))
				if err != nil || g.InitialSpeaker() != fmt.Sprintf("agent-%d", (i+worker)%9) {
					t.Errorf("got %v, %v", g, err)
					return
				}
			}
		})
	}
	wait.Wait()
}

// TestMemory holds what a loaded workflow costs: its graph, where no other
// channel shares it, and its facts.
func TestMemory(t *testing.T) {
	n := scale.N(500)
	triage := cookbook(t, "triage with tasks").graph
	state := func(i int, c *graph.Cache, distinct bool) (*graph.Graph, graph.Facts) {
		order := []string{fmt.Sprintf("%032x", 4*i), fmt.Sprintf("%032x", 4*i+1), fmt.Sprintf("%032x", 4*i+2)}
		if !distinct {
			order = []string{"@triage", "@digger", "@scribe"}
		}
		ids := map[string]string{"@triage": order[0], "@digger": order[1], "@scribe": order[2]}
		named, err := load(t, triage).WithNames(ids)
		equal(t, err, nil)
		g, err := c.Load([]byte(named.Source()))
		equal(t, err, nil)
		f := g.Start(order, order[0], vars(t, `{}`))
		f, _ = g.Advance(f, contextSet(order[0], `{"set":{"job":"dig"}}`))
		f, _ = g.Advance(f, packet(order[0], `{"routing":{"kind":"text"},"body":"x"}`))
		return g, f
	}
	measure := func(distinct bool) uint64 {
		c := graph.NewCache(graph.NewRegistry(graph.Limits{}), 16)
		graphs, facts := make([]*graph.Graph, n), make([]graph.Facts, n)
		before := heap()
		for i := range n {
			graphs[i], facts[i] = state(i, c, distinct)
		}
		after := heap()
		runtime.KeepAlive(graphs)
		runtime.KeepAlive(facts)
		return (after - before) / uint64(n)
	}
	alone, shared := measure(true), measure(false)
	t.Logf("bytes for each channel besides its facts' own %d: graph of its own %d, shared graph %d", unsafe.Sizeof(graph.Facts{}), alone, shared)
	if alone > 2800 || shared > 400 {
		t.Fatalf("a channel costs %d bytes with a graph of its own (at most 2800), %d with a shared one (at most 400)", alone, shared)
	}
}

// TestFactsOwnTheirNames: names of participants are kept once for a channel,
// and no envelope's memory is kept alive.
func TestFactsOwnTheirNames(t *testing.T) {
	t.Parallel()
	g := build(t, rules("a", rule(graph.Always{}, graph.Stay{})))
	order := []string{"agent-a", "agent-b"}
	for i, sender := range []string{"agent-a", "agent-b", "stranger"} {
		e := text(strings.Clone(sender))
		f, _ := g.Advance(g.Start(order, "agent-a", graph.Vars{}), e)
		equal(t, f.LastSpeaker, sender)
		equal(t, unsafe.StringData(f.LastSpeaker) == unsafe.StringData(e.Sender), false)
		if i < len(order) {
			equal(t, unsafe.StringData(f.LastSpeaker) == unsafe.StringData(order[i]), true)
			equal(t, unsafe.StringData(f.Expected) == unsafe.StringData(order[i]), true)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
