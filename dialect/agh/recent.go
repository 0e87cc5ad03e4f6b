package agh

import (
	"hash/maphash"
	"sync"
)

// recent remembers the last messages by name: those published here, to tell their echo
// from messages of others with a hosted peer's name, or received greetings and
// questions, which are not stored. It keeps hashes, because ids may be long.
type recent struct {
	seed maphash.Seed

	mu    sync.Mutex
	known map[uint64]struct{}
	ring  []uint64 // grows up to mostRecent
	next  int
}

// mostRecent is how many are remembered.
const mostRecent = 1 << 16

func newRecent() *recent {
	return &recent{seed: maphash.MakeSeed(), known: map[uint64]struct{}{}}
}

// add adds a message; false: it was there.
func (r *recent) add(name ...string) bool {
	key := r.key(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.known[key]; ok {
		return false
	}
	r.known[key] = struct{}{}
	if len(r.ring) < mostRecent {
		r.ring = append(r.ring, key)
		return true
	}
	delete(r.known, r.ring[r.next])
	r.ring[r.next] = key
	r.next = (r.next + 1) % len(r.ring)
	return true
}

func (r *recent) has(name ...string) bool {
	key := r.key(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.known[key]
	return ok
}

// key hashes a name; only its last part may have a zero byte.
func (r *recent) key(name []string) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	for _, s := range name {
		_, _ = h.WriteString(s) // it never fails
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}
