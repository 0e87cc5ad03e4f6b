package disk

import (
	"context"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
)

// spareSeekers bounds the iterators that a view keeps for later lookups.
const spareSeekers = 4

// seekers are iterators of a view that are free for reuse. Most keys that are
// looked up do not exist, and an open iterator finds that out several times
// faster than Pebble's Get: it uses the filters of all levels and keeps its
// tables open.
type seekers struct {
	mu   sync.Mutex
	free []*pebble.Iterator
}

func (s *seekers) take() *pebble.Iterator {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.free)
	if n == 0 {
		return nil
	}
	it := s.free[n-1]
	s.free = s.free[:n-1]
	return it
}

// give returns an iterator for reuse, or closes it if there are enough.
func (s *seekers) give(it *pebble.Iterator) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) < spareSeekers {
		s.free = append(s.free, it)
		return
	}
	_ = it.Close()
}

// close closes the free iterators: each keeps tables and memory of the store
// alive.
func (s *seekers) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.free {
		_ = it.Close()
	}
	s.free = nil
}

// seek is get with a reused iterator, for heads of logs and holders of claims, whose
// keys are mostly absent.
func (v *view) seek(key []byte, decode func(value []byte) error) (bool, error) {
	it := v.seekers.take()
	if it == nil {
		var err error
		it, err = v.snap.NewIter(&pebble.IterOptions{
			LowerBound: []byte{layout.KindHead}, UpperBound: []byte{layout.KindClaim + 1}, UseL6Filters: true,
		})
		if err != nil {
			return false, layout.StoreError(err)
		}
	}
	if !it.SeekPrefixGE(key) {
		if it.Error() != nil {
			_ = it.Close()
			return v.get(key, decode) // damage elsewhere may not affect this key
		}
		v.seekers.give(it)
		return false, nil
	}
	value, err := it.ValueAndErr()
	if err != nil {
		_ = it.Close()
		return v.get(key, decode)
	}
	err = decode(value)
	v.seekers.give(it)
	return err == nil, err
}

// closeSeekers closes the free iterators of the newest view.
func (e *Engine) closeSeekers() {
	v, err := e.enter(context.Background(), e.shard)
	if err != nil {
		return
	}
	defer v.leave()
	if !e.wedged.Load() {
		v.seekers.close()
	}
}
