package disk

import (
	"encoding/binary"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/internal/order"
)

// A commit's entry lists what its batch wrote.
const (
	entryBatch byte = 1 + iota
	entryDropLog
	entryDropPartition
)

type entry struct {
	kind      byte
	writes    []written
	partition journal.PartitionName // of the values, or dropped
	values    []string
	log       journal.LogName // dropped
}

type written struct {
	id    order.ID
	first uint64
	count uint64
}

func (w written) last() uint64 { return w.first + w.count - 1 }

// appendBatchEntry encodes the entry of a batch without building it.
func appendBatchEntry(b, key []byte, batch *journal.Batch, plan *order.Plan) []byte {
	from := len(b)
	b = append(b, entryBatch)
	b = binary.AppendUvarint(b, uint64(len(batch.Appends)))
	for i := range batch.Appends {
		b = binary.AppendUvarint(b, uint64(plan.Heads[i].ID))
		b = binary.AppendUvarint(b, plan.First(i))
		b = binary.AppendUvarint(b, uint64(len(batch.Appends[i].Records)))
	}
	if len(batch.Values) > 0 {
		b, _ = batch.Values[0].Key.Partition.AppendBinary(b)
		for i := range batch.Values {
			b = appendString(b, batch.Values[i].Key.Name)
		}
	}
	return appendSum(b, from, key)
}

// append encodes an entry that was read.
func (e *entry) append(b, key []byte) []byte {
	from := len(b)
	b = append(b, e.kind)
	switch e.kind {
	case entryDropLog:
		b, _ = e.log.AppendBinary(b)
	case entryDropPartition:
		b, _ = e.partition.AppendBinary(b)
	default:
		b = binary.AppendUvarint(b, uint64(len(e.writes)))
		for _, w := range e.writes {
			b = binary.AppendUvarint(b, uint64(w.id))
			b = binary.AppendUvarint(b, w.first)
			b = binary.AppendUvarint(b, w.count)
		}
		if len(e.values) > 0 {
			b, _ = e.partition.AppendBinary(b)
			for _, name := range e.values {
				b = appendString(b, name)
			}
		}
	}
	return appendSum(b, from, key)
}

func appendDropEntry(b, key []byte, r *order.Removal) []byte {
	from := len(b)
	if r.Whole() {
		b, _ = r.Partition.AppendBinary(append(b, entryDropPartition))
	} else {
		b, _ = r.Log.AppendBinary(append(b, entryDropLog))
	}
	return appendSum(b, from, key)
}

func decodeEntry(key, value []byte) (entry, error) {
	value, err := checked(key, value)
	if err != nil || len(value) == 0 {
		return entry{}, errSum
	}
	e := entry{kind: value[0]}
	c := cutter{b: value[1:]}
	switch e.kind {
	case entryBatch:
		for range count(&c) {
			e.writes = append(e.writes, written{id: order.ID(c.uvarint()), first: c.uvarint(), count: c.uvarint()})
		}
		if len(c.b) > 0 {
			c.partition(&e.partition)
			for len(c.b) > 0 {
				e.values = append(e.values, string(c.bytes()))
			}
		}
	case entryDropLog:
		e.log = c.log()
	case entryDropPartition:
		c.partition(&e.partition)
	default:
		return entry{}, errForm
	}
	return e, c.err()
}

func (c *cutter) partition(p *journal.PartitionName) {
	name, rest, err := journal.CutPartitionName(c.b)
	if err != nil {
		c.b, c.bad = nil, true
		return
	}
	*p, c.b = name, rest
}
