package agh

import (
	"sync"

	"github.com/parley-hub/parley/dialect/agh/wire"
)

// recent remembers the last messages that were published here, so that their
// echo is told from what somebody else sends under a hosted peer's name.
type recent struct {
	mu    sync.Mutex
	known map[string]struct{}
	ring  []string
	next  int
}

// mostRecent is how many are remembered.
const mostRecent = 1 << 16

func newRecent() *recent {
	return &recent{known: map[string]struct{}{}, ring: make([]string, mostRecent)}
}

func (r *recent) add(from, id string) {
	key := wire.RecordKey(from, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.known[key]; ok {
		return
	}
	delete(r.known, r.ring[r.next])
	r.ring[r.next] = key
	r.known[key] = struct{}{}
	r.next = (r.next + 1) % len(r.ring)
}

func (r *recent) has(from, id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.known[wire.RecordKey(from, id)]
	return ok
}
