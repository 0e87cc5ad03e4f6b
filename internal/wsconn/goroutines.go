package wsconn

import "sync"

// goroutines are those that work for a connection. Their owner waits for them
// all, and afterwards none can be started.
type goroutines struct {
	mu      sync.Mutex
	running int
	over    bool
	none    *sync.Cond // made when the owner waits
}

// start runs fn on a goroutine of its own, unless the owner's wait is over.
func (g *goroutines) start(fn func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return false
	}
	g.running++
	go func() {
		defer g.ended()
		fn()
	}()
	return true
}

func (g *goroutines) ended() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.running == 0 && g.none != nil {
		g.none.Broadcast()
	}
}

// wait returns when none runs; it also waits for those that are started
// meanwhile.
func (g *goroutines) wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.running > 0 {
		if g.none == nil {
			g.none = sync.NewCond(&g.mu)
		}
		g.none.Wait()
	}
	g.over = true
}
