package mem

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/internal/order"
)

// Store is the memory that survives an engine, as a disk survives a process.
// One engine is open on it at a time.
type Store struct {
	mu    sync.Mutex // guards everything, including the engine's state
	open  bool
	epoch uint64
	// limbo are writes whose sync failed: the next open applies them.
	limbo     []func()
	shards    []*shard // made by the first open
	snapshots map[journal.ValueKey]journal.Snapshot
	unindexed bool // the next open rebuilds the index
}

// shard is the state of one shard.
type shard struct {
	commits  []commit // the offset is the index plus one
	logs     map[journal.LogName]*log
	byID     map[order.ID]*log
	index    []indexEntry // sorted by key, then log
	claims   map[string]*order.Held
	values   map[journal.ValueKey]journal.Value
	lazy     map[journal.ValueKey]journal.Value
	removals []order.Removal
}

type log struct {
	name    journal.LogName
	id      order.ID
	removed uint64 // records removed from the front by a drop that is running
	records []record
}

type record struct {
	offset uint64
	journal.Record
}

func (l *log) head() order.Head {
	last := l.removed + uint64(len(l.records))
	return order.Head{ID: l.id, Seq: last, Offset: l.records[len(l.records)-1].offset}
}

type commit struct {
	writes  []write
	values  []journal.ValueKey
	dropped *order.Removal
}

type write struct {
	id          order.ID
	name        journal.LogName
	first, last uint64
}

type indexEntry struct {
	key   []byte
	id    order.ID
	value []byte
}

func compareEntries(a, b indexEntry) int {
	if c := bytes.Compare(a.key, b.key); c != 0 {
		return c
	}
	switch {
	case a.id < b.id:
		return -1
	case a.id > b.id:
		return 1
	}
	return 0
}

// NewStore returns an empty store. The first engine that opens it decides how
// many shards it has.
func NewStore() *Store {
	return &Store{epoch: 1, snapshots: map[journal.ValueKey]journal.Snapshot{}}
}

func newShard() *shard {
	return &shard{
		logs:   map[journal.LogName]*log{},
		byID:   map[order.ID]*log{},
		claims: map[string]*order.Held{},
		values: map[journal.ValueKey]journal.Value{},
		lazy:   map[journal.ValueKey]journal.Value{},
	}
}

// split makes the shards of a new store. For an existing store it returns an error if
// the number differs. 0 means as many as there are, or one.
func (s *Store) split(shards int) error {
	switch {
	case shards < 0:
		return fmt.Errorf("mem: %d shards, want at least 1", shards)
	case s.shards == nil:
		for range max(shards, 1) {
			s.shards = append(s.shards, newShard())
		}
	case shards != 0 && shards != len(s.shards):
		return fmt.Errorf("mem: the store has %d shards, not %d", len(s.shards), shards)
	}
	return nil
}

// of returns the shard of a partition.
func (s *Store) of(p journal.PartitionName) *shard {
	return s.shards[journal.ShardOf(p, len(s.shards))]
}

// LoseIndex discards the index, the claims and their marker, as a disk might
// lose them. It must be called while no engine is open.
func (s *Store) LoseIndex() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unindexed = true
	for _, sh := range s.shards {
		sh.index = nil
		clear(sh.claims)
	}
}

// rebuild makes the index and the claims of every shard from the records.
func (s *Store) rebuild() {
	for _, sh := range s.shards {
		sh.rebuild()
	}
	s.unindexed = false
}

// append applies one ordered batch.
func (s *shard) append(b *journal.Batch, plan *order.Plan) {
	c := commit{}
	for i := range b.Appends {
		a, head := &b.Appends[i], plan.Heads[i]
		l := s.byID[head.ID]
		if l == nil {
			l = &log{name: a.Log, id: head.ID}
			s.byID[head.ID] = l
			s.logs[a.Log] = l
		}
		for j := range a.Records {
			l.records = append(l.records, record{offset: plan.Offset, Record: a.Records[j]})
			s.applyIndex(head.ID, &a.Records[j])
		}
		c.writes = append(c.writes, write{id: head.ID, name: a.Log, first: plan.First(i), last: head.Seq})
	}
	for _, change := range plan.Claims {
		if change.Held == nil {
			delete(s.claims, change.Name)
		} else {
			s.claims[change.Name] = change.Held
		}
	}
	for i := range b.Values {
		w := &b.Values[i]
		c.values = append(c.values, w.Key)
		if w.Delete {
			delete(s.values, w.Key)
		} else {
			s.values[w.Key] = journal.Value{Data: w.Data, Version: plan.Offset}
		}
	}
	s.commits = append(s.commits, c)
}

func (s *shard) applyIndex(id order.ID, r *journal.Record) {
	for _, key := range r.Remove {
		s.removeEntry(key, id)
	}
	for _, put := range r.Put {
		e := indexEntry{key: put.Key, id: id, value: put.Value}
		at, found := slices.BinarySearchFunc(s.index, e, compareEntries)
		if found {
			s.index[at] = e
		} else {
			s.index = slices.Insert(s.index, at, e)
		}
	}
}

func (s *shard) removeEntry(key []byte, id order.ID) {
	at, found := slices.BinarySearchFunc(s.index, indexEntry{key: key, id: id}, compareEntries)
	if found {
		s.index = slices.Delete(s.index, at, at+1)
	}
}

// rebuild makes the index and the claims from the records, in offset order.
func (s *shard) rebuild() {
	s.index = nil
	clear(s.claims)
	for i, c := range s.commits {
		for _, w := range c.writes {
			l := s.byID[w.id]
			if l == nil {
				continue
			}
			for seq := max(w.first, l.removed+1); seq <= w.last; seq++ {
				r := &l.records[seq-l.removed-1].Record
				s.applyIndex(w.id, r)
				s.replayClaims(l, seq, uint64(i+1), r)
			}
		}
	}
}

func (s *shard) replayClaims(l *log, seq, offset uint64, r *journal.Record) {
	for _, name := range r.Release {
		if held := s.claims[name]; held != nil && held.ID == l.id {
			delete(s.claims, name)
		}
	}
	for _, take := range r.Take {
		s.claims[take.Name] = &order.Held{ID: l.id, Claimed: journal.Claimed{
			Name: take.Name, Log: l.name, Incarnation: l.id.Incarnation(),
			Seq: seq, Offset: offset, Expires: order.Milliseconds(take.Expires),
		}}
	}
}

// base gives a shard's book access to the store. It is used with the lock held.
type base struct{ s *shard }

func (b base) Head(name journal.LogName) (order.Head, error) {
	if l := b.s.logs[name]; l != nil && len(l.records) > 0 {
		return l.head(), nil
	}
	return order.Head{}, nil
}

func (b base) Claim(name string) (*order.Held, error) { return b.s.claims[name], nil }

func (b base) Value(key journal.ValueKey) (journal.Value, error) { return b.s.values[key], nil }
