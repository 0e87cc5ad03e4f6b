package order

import (
	"slices"

	"github.com/parley-hub/parley/journal"
)

// Removal is an ordered drop whose data is not all removed yet.
type Removal struct {
	Offset    uint64
	Log       journal.LogName       // of a dropped log
	Partition journal.PartitionName // of a dropped partition
	Keep      []string              // families that a dropped partition keeps
	ticket    *journal.Ticket
}

// Whole reports whether a whole partition is removed.
func (r *Removal) Whole() bool { return r.Partition != journal.PartitionName{} }

// Covers reports whether an incarnation of a log is removed by r.
func (r *Removal) Covers(log journal.LogName, incarnation uint64) bool {
	if incarnation >= r.Offset {
		return false
	}
	if !r.Whole() {
		return r.Log == log
	}
	return r.Partition == log.Of() && !slices.Contains(r.Keep, log.Family)
}

// DropLog orders the removal of a log. If there is no such log, the removal is nil,
// and the ticket is that of the pending drop of the log, or a settled one.
func (b *Book) DropLog(log journal.LogName, fate *journal.Fate) (*journal.Ticket, *Removal, error) {
	head, ticket, err := b.Head(log)
	if err != nil {
		return nil, nil, err
	}
	if head.ID == 0 {
		if ticket == nil {
			ticket = b.settledAt(0)
		}
		return ticket, nil, nil
	}
	r := b.addRemoval(Removal{Log: log}, fate)
	return r.ticket, r, nil
}

// DropPartition orders the removal of a partition.
func (b *Book) DropPartition(p journal.PartitionName, keep []string, fate *journal.Fate) (*journal.Ticket, *Removal) {
	r := b.addRemoval(Removal{Partition: p, Keep: slices.Clone(keep)}, fate)
	return r.ticket, r
}

func (b *Book) addRemoval(r Removal, fate *journal.Fate) *Removal {
	b.ordered++
	r.Offset = b.ordered
	r.ticket = fate.Ticket(b.shard, journal.ShardPosition{Epoch: b.epoch, Offset: r.Offset}, b.term, nil)
	b.Resume(r)
	return &r
}

// Resume adds a removal that an earlier process began.
func (b *Book) Resume(r Removal) {
	if r.ticket == nil {
		r.ticket = b.settledAt(r.Offset)
	}
	if r.Whole() {
		b.partitions[r.Partition] = append(b.partitions[r.Partition], r)
	} else {
		b.logs[r.Log] = append(b.logs[r.Log], r)
	}
}

// Removed ends a removal: the base has no data of it any more.
func (b *Book) Removed(r *Removal) {
	same := func(other Removal) bool { return other.Offset == r.Offset }
	if r.Whole() {
		prune(b.partitions, r.Partition, same)
	} else {
		prune(b.logs, r.Log, same)
	}
}

func (b *Book) forgetRemovals() {
	pending := func(r Removal) bool { return r.Offset > b.durable }
	for p := range b.partitions {
		prune(b.partitions, p, pending)
	}
	for log := range b.logs {
		prune(b.logs, log, pending)
	}
}

func prune[K comparable](m map[K][]Removal, key K, out func(Removal) bool) {
	left := slices.DeleteFunc(m[key], out)
	if len(left) == 0 {
		delete(m, key)
	} else {
		m[key] = left
	}
}

// removing returns the latest removal, ordered up to an offset, that covers an
// incarnation of a log.
func (b *Book) removing(log journal.LogName, incarnation, upTo uint64) *Removal {
	if len(b.logs) == 0 && len(b.partitions) == 0 {
		return nil
	}
	var found *Removal
	for _, list := range [2][]Removal{b.logs[log], b.partitions[log.Of()]} {
		for i := range list {
			r := &list[i]
			if r.Offset <= upTo && r.Covers(log, incarnation) && (found == nil || found.Offset < r.Offset) {
				found = r
			}
		}
	}
	return found
}

// Gone reports whether an incarnation of a log has been dropped durably, even if the
// base still has data of it.
func (b *Book) Gone(log journal.LogName, incarnation uint64) bool {
	return b.removing(log, incarnation, b.durable) != nil
}

// Removals counts the drops that are not finished.
func (b *Book) Removals() int {
	n := 0
	for _, list := range b.logs {
		n += len(list)
	}
	for _, list := range b.partitions {
		n += len(list)
	}
	return n
}
