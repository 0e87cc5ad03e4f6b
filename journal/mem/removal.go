package mem

import (
	"maps"
	"slices"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/internal/order"
)

// removalStep bounds what one step of a removal removes.
const removalStep = 256

// drop applies an ordered drop: it records the removal, and removes the values of a
// whole partition at once. Of the lazy values it removes those that lazy selects.
func (s *shard) drop(r *order.Removal, lazy func(journal.ValueKey, journal.Value) bool) {
	s.commits = append(s.commits, commit{dropped: r})
	s.removals = append(s.removals, *r)
	if !r.Whole() {
		return
	}
	inPartition := func(key journal.ValueKey, _ journal.Value) bool { return key.Partition == r.Partition }
	maps.DeleteFunc(s.values, inPartition)
	maps.DeleteFunc(s.lazy, lazy)
}

// removeSome does one step of the oldest removal. It returns the removal if that
// finished it.
func (s *shard) removeSome() (finished *order.Removal) {
	if len(s.removals) == 0 {
		return nil
	}
	r := s.removals[0]
	for _, l := range s.byID {
		if r.Covers(l.name, l.id.Incarnation()) {
			s.shorten(l)
			return nil
		}
	}
	s.removals = slices.Delete(s.removals, 0, 1)
	return &r
}

func (s *shard) shorten(l *log) {
	n := min(removalStep, len(l.records))
	keys := map[string]struct{}{}
	for i := range l.records[:n] {
		for _, put := range l.records[i].Put {
			keys[string(put.Key)] = struct{}{}
		}
		for _, take := range l.records[i].Take {
			if held := s.claims[take.Name]; held != nil && held.ID == l.id {
				delete(s.claims, take.Name)
			}
		}
	}
	if len(keys) > 0 {
		s.index = slices.DeleteFunc(s.index, func(e indexEntry) bool {
			if e.id != l.id {
				return false
			}
			_, put := keys[string(e.key)]
			return put
		})
	}
	l.removed += uint64(n)
	l.records = l.records[n:]
	if len(l.records) > 0 {
		return
	}
	delete(s.byID, l.id)
	if s.logs[l.name] == l {
		delete(s.logs, l.name)
	}
}
