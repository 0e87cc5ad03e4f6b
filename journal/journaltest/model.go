package journaltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/parley-hub/parley/journal"
)

// model is a journal that is simple enough to be evidently correct: it keeps every
// batch, and computes everything else by replaying them.
type model struct {
	now     func() time.Time
	commits []modelCommit
	lazy    map[journal.ValueKey]modelLazy
}

type modelLazy struct {
	data    string
	version uint64
}

// modelCommit is a batch, or a drop.
type modelCommit struct {
	batch journal.Batch
	drop  *journal.LogName
	part  *journal.PartitionName
	keep  []string
}

// modelState is the result of a replay.
type modelState struct {
	logs   map[journal.LogName]*modelLog
	claims map[string]journal.Claimed
	values map[journal.ValueKey]journal.Value
}

type modelLog struct {
	incarnation uint64
	created     int // its place among the logs that the batch created
	records     []modelRecord
	index       map[string]string
}

type modelRecord struct {
	offset uint64
	data   string
}

func newModel(now func() time.Time) *model {
	return &model{now: now, lazy: map[journal.ValueKey]modelLazy{}}
}

func (m *model) replay() *modelState {
	s := &modelState{
		logs: map[journal.LogName]*modelLog{}, claims: map[string]journal.Claimed{}, values: map[journal.ValueKey]journal.Value{},
	}
	for i, c := range m.commits {
		offset := uint64(i + 1)
		switch {
		case c.drop != nil:
			s.drop(*c.drop)
		case c.part != nil:
			for log := range s.logs {
				if log.Of() == *c.part && !slices.Contains(c.keep, log.Family) {
					s.drop(log)
				}
			}
			maps.DeleteFunc(s.values, func(k journal.ValueKey, _ journal.Value) bool { return k.Partition == *c.part })
		default:
			s.apply(c.batch, offset)
		}
	}
	return s
}

func (s *modelState) drop(log journal.LogName) {
	delete(s.logs, log)
	maps.DeleteFunc(s.claims, func(_ string, c journal.Claimed) bool { return c.Log == log })
}

func (s *modelState) apply(b journal.Batch, offset uint64) {
	for i, a := range b.Appends {
		l := s.logs[a.Log]
		if l == nil {
			l = &modelLog{incarnation: offset, created: i, index: map[string]string{}}
			s.logs[a.Log] = l
		}
		for _, r := range a.Records {
			l.records = append(l.records, modelRecord{offset, string(r.Data)})
			for _, key := range r.Remove {
				delete(l.index, string(key))
			}
			for _, put := range r.Put {
				l.index[string(put.Key)] = string(put.Value)
			}
			for _, name := range r.Release {
				if c, held := s.claims[name]; held && c.Log == a.Log && c.Incarnation == l.incarnation {
					delete(s.claims, name)
				}
			}
			for _, take := range r.Take {
				s.claims[take.Name] = journal.Claimed{
					Name: take.Name, Log: a.Log, Incarnation: l.incarnation, Seq: uint64(len(l.records)), Offset: offset, Expires: take.Expires,
				}
			}
		}
	}
	for _, w := range b.Values {
		if w.Delete {
			delete(s.values, w.Key)
		} else {
			s.values[w.Key] = journal.Value{Data: append([]byte{}, w.Data...), Version: offset}
		}
	}
}

// append returns the kind of conflict of a batch, or 0 if it is accepted. It is not
// called with batches that are refused in every state.
func (m *model) append(b journal.Batch) journal.ConflictKind {
	s := m.replay()
	for _, a := range b.Appends {
		seq := uint64(0)
		if l := s.logs[a.Log]; l != nil {
			seq = uint64(len(l.records))
		}
		if !a.Expect.Accepts(seq) {
			return journal.SequenceConflict
		}
	}
	// Claims are taken and released one after the other.
	claims := maps.Clone(s.claims)
	for _, a := range b.Appends {
		incarnation := uint64(len(m.commits) + 1)
		if l := s.logs[a.Log]; l != nil {
			incarnation = l.incarnation
		}
		for _, r := range a.Records {
			for _, name := range r.Release {
				if c, held := claims[name]; held && c.Log == a.Log && c.Incarnation == incarnation {
					delete(claims, name)
				}
			}
			for _, take := range r.Take {
				if c, held := claims[take.Name]; held && (c.Expires.IsZero() || m.now().Before(c.Expires)) {
					return journal.ClaimConflict
				}
				claims[take.Name] = journal.Claimed{Log: a.Log, Incarnation: incarnation}
			}
		}
	}
	for _, w := range b.Values {
		if !w.Expect.Accepts(s.values[w.Key].Version) {
			return journal.ValueConflict
		}
	}
	m.commits = append(m.commits, modelCommit{batch: b})
	return 0
}

func (m *model) dropLog(log journal.LogName) {
	if m.replay().logs[log] != nil {
		m.commits = append(m.commits, modelCommit{drop: &log})
	}
}

func (m *model) dropPartition(p journal.PartitionName, keep []string) {
	m.commits = append(m.commits, modelCommit{part: &p, keep: keep})
	maps.DeleteFunc(m.lazy, func(k journal.ValueKey, _ modelLazy) bool { return k.Partition == p })
}

// index returns the whole index in the order of a scan: by key, and under one key by
// the age of the log.
func (s *modelState) index() []string {
	type entry struct {
		key, value  string
		incarnation uint64
		created     int
	}
	var all []entry
	for _, l := range s.logs {
		for key, value := range l.index {
			all = append(all, entry{key, value, l.incarnation, l.created})
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		if c := strings.Compare(a.key, b.key); c != 0 {
			return c
		}
		if a.incarnation != b.incarnation {
			return int(a.incarnation) - int(b.incarnation)
		}
		return a.created - b.created
	})
	var out []string
	for _, e := range all {
		out = append(out, e.key+"="+e.value)
	}
	return out
}

func (l *modelLog) texts() []string {
	var out []string
	for i, r := range l.records {
		out = append(out, fmt.Sprintf("%d@%d %s", i+1, r.offset, r.data))
	}
	return out
}
