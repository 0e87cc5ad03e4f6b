//go:build unix

package cluster_test

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/parley-hub/parley/internal/natsproc"
	"github.com/parley-hub/parley/internal/scale"
)

// TestHistoriesUnderFaultsAtOnce: the leader is cut off from all servers while
// another node is paused or killed, a server is killed or paused, and another
// server is cut off from the rest, all at the same time. The test checks that each
// fault has taken effect. Then the faults end, in any order.
func TestHistoriesUnderFaultsAtOnce(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := newSite(t, seed, natsproc.Options{}, t.TempDir(), t.TempDir(), t.TempDir())
	h := s.clients(seed)
	s.progress("the beginning")
	for round := range scale.N(1) {
		s.everything((seed+uint64(round))%2 == 0)
		s.progress("all faults at once")
		s.progress("that")
	}
	s.check(h.end())
}

// everything runs one round of faults: a node is paused and a server killed, or the
// other way round.
func (s *site) everything(pauseNode bool) {
	s.t.Helper()
	leads := slices.Index(s.nodes, s.leader())
	cut, node := s.ways[leads], s.nodes[(leads+1+s.rng.IntN(2))%3]
	down := s.rng.IntN(3)
	alone := (down + 1 + s.rng.IntN(2)) % 3

	for _, p := range cut {
		p.Cut(true)
	}
	s.servers.Cut(alone, true)
	answered := make(chan struct{}) // by the node that is paused
	if pauseNode {
		node.pause()
		go func() {
			defer close(answered)
			node.do(deed{On: "log", Read: true})
		}()
		s.servers.Kill(down)
	} else {
		node.kill()
		if err := s.servers.Pause(down); err != nil {
			s.t.Error(err)
		}
	}
	for s.servers.Routes(s.ctx, alone) != 0 || s.carried(cut) != 0 || s.servers.Routes(s.ctx, down) != -1 {
		s.while(time.Millisecond, 50*time.Millisecond)
	}
	acked := s.acked.Load()
	s.while(500*time.Millisecond, 2*time.Second)
	if now := s.acked.Load(); now != acked {
		s.t.Errorf("%d writes were acknowledged without quorum: the faults had no effect", now-acked)
	}
	select {
	case <-answered:
		s.t.Error("a node that is paused answers")
	default:
	}

	ends := []func(){
		func() {
			for _, p := range cut {
				p.Cut(false)
			}
		},
		func() { s.servers.Cut(alone, false) },
		func() {
			if !pauseNode {
				node.begin()
				return
			}
			node.signal(syscall.SIGCONT)
			<-answered
		},
		func() {
			err := s.servers.Resume(down)
			if pauseNode {
				err = s.servers.Again(down)
			}
			if err != nil {
				s.t.Error(err)
			}
		},
	}
	s.rng.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
	for _, end := range ends {
		end()
		s.while(time.Millisecond, 300*time.Millisecond)
	}
}

// carried counts the connections through the proxies in ways.
func (s *site) carried(ways []*natsproc.Proxy) (n int) {
	for _, p := range ways {
		n += p.Carries()
	}
	return n
}
