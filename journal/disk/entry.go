package disk

import (
	"encoding/binary"
	"iter"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/internal/order"
)

// Every batch has an entry that lists what it wrote. The entries of one group
// are stored together, in order, under the offset of the last.
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

// entryList gathers the entries of a group.
type entryList struct {
	count   uint64
	encoded []byte
	scratch []byte
}

func (l *entryList) add(encoded []byte) {
	l.count++
	l.encoded = appendBytes(l.encoded, encoded)
	l.scratch = encoded
}

// addBatch adds the entry of a batch without building it.
func (l *entryList) addBatch(batch *journal.Batch, plan *order.Plan) {
	b := append(l.scratch[:0], entryBatch)
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
	l.add(b)
}

func (l *entryList) addDrop(r *order.Removal) {
	b := l.scratch[:0]
	if r.Whole() {
		b, _ = r.Partition.AppendBinary(append(b, entryDropPartition))
	} else {
		b, _ = r.Log.AppendBinary(append(b, entryDropLog))
	}
	l.add(b)
}

// addEntry adds an entry that was read.
func (l *entryList) addEntry(e *entry) {
	b := append(l.scratch[:0], e.kind)
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
	l.add(b)
}

// value encodes the list to be stored under a key.
func (l *entryList) value(key []byte) []byte {
	b := binary.AppendUvarint(make([]byte, 0, len(l.encoded)+16), l.count)
	return appendSum(append(b, l.encoded...), 0, key)
}

// decodeEntries goes through the entries stored under a key, with their
// offsets. It ends with an error, if there is one.
func decodeEntries(key, value []byte) iter.Seq2[uint64, func() (entry, error)] {
	return func(yield func(uint64, func() (entry, error)) bool) {
		fail := func(err error) { yield(0, func() (entry, error) { return entry{}, err }) }
		value, err := checked(key, value)
		if err != nil || len(key) != commitKeyLen {
			fail(errSum)
			return
		}
		c := cutter{b: value}
		n := c.uvarint()
		last := offsetOf(key)
		if n == 0 || n > last || n > uint64(len(c.b)) {
			fail(errForm)
			return
		}
		for offset := last - n + 1; offset <= last; offset++ {
			one := c.bytes()
			if !yield(offset, func() (entry, error) { return decodeEntry(one) }) {
				return
			}
		}
		if c.err() != nil {
			fail(errForm)
		}
	}
}

// firstOffset is the offset of the first entry stored under a key; 0 when that
// cannot be told.
func firstOffset(key, value []byte) uint64 {
	n, size := binary.Uvarint(value)
	last := offsetOf(key)
	if size <= 0 || n == 0 || n > last {
		return 0
	}
	return last - n + 1
}

func decodeEntry(b []byte) (entry, error) {
	if len(b) == 0 {
		return entry{}, errForm
	}
	e := entry{kind: b[0]}
	c := cutter{b: b[1:]}
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
