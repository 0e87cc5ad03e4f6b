package layout

import (
	"encoding/binary"
	"iter"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/internal/order"
)

// Every batch has an entry that lists what it wrote. The entries of one group
// are stored together, in order, under the offset of the last.
const (
	EntryBatch byte = 1 + iota
	EntryDropLog
	EntryDropPartition
)

// Entry is what one batch wrote, or what one drop dropped.
type Entry struct {
	Kind      byte
	Writes    []Written
	Partition journal.PartitionName // of the values, or dropped
	Values    []string
	Log       journal.LogName // dropped
}

// Written is a range of consecutive records that a batch wrote to a log.
type Written struct {
	ID    order.ID
	First uint64
	Count uint64
}

func (w Written) Last() uint64 { return w.First + w.Count - 1 }

// EntryList gathers the entries of a group.
type EntryList struct {
	count   uint64
	encoded []byte
	scratch []byte
}

func (l *EntryList) add(encoded []byte) {
	l.count++
	l.encoded = appendBytes(l.encoded, encoded)
	l.scratch = encoded
}

// AddBatch adds the entry of a batch without building an Entry.
func (l *EntryList) AddBatch(batch *journal.Batch, plan *order.Plan) {
	b := append(l.scratch[:0], EntryBatch)
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

func (l *EntryList) AddDrop(r *order.Removal) {
	b := l.scratch[:0]
	if r.Whole() {
		b, _ = r.Partition.AppendBinary(append(b, EntryDropPartition))
	} else {
		b, _ = r.Log.AppendBinary(append(b, EntryDropLog))
	}
	l.add(b)
}

// AddEntry adds an entry that was decoded.
func (l *EntryList) AddEntry(e *Entry) {
	b := append(l.scratch[:0], e.Kind)
	switch e.Kind {
	case EntryDropLog:
		b, _ = e.Log.AppendBinary(b)
	case EntryDropPartition:
		b, _ = e.Partition.AppendBinary(b)
	default:
		b = binary.AppendUvarint(b, uint64(len(e.Writes)))
		for _, w := range e.Writes {
			b = binary.AppendUvarint(b, uint64(w.ID))
			b = binary.AppendUvarint(b, w.First)
			b = binary.AppendUvarint(b, w.Count)
		}
		if len(e.Values) > 0 {
			b, _ = e.Partition.AppendBinary(b)
			for _, name := range e.Values {
				b = appendString(b, name)
			}
		}
	}
	l.add(b)
}

// Value encodes the list to be stored under a key.
func (l *EntryList) Value(key []byte) []byte {
	b := binary.AppendUvarint(make([]byte, 0, len(l.encoded)+16), l.count)
	return AppendSum(append(b, l.encoded...), 0, key)
}

// DecodeEntries yields the entries stored under a key, with their offsets. If it
// fails, the last entry it yields returns the error.
func DecodeEntries(key, value []byte) iter.Seq2[uint64, func() (Entry, error)] {
	return func(yield func(uint64, func() (Entry, error)) bool) {
		fail := func(err error) { yield(0, func() (Entry, error) { return Entry{}, err }) }
		value, err := Checked(key, value)
		if err != nil || len(key) != commitKeyLen {
			fail(ErrSum)
			return
		}
		c := cutter{b: value}
		n := c.uvarint()
		last := OffsetOf(key)
		if n == 0 || n > last || n > uint64(len(c.b)) {
			fail(ErrForm)
			return
		}
		for offset := last - n + 1; offset <= last; offset++ {
			one := c.bytes()
			if !yield(offset, func() (Entry, error) { return decodeEntry(one) }) {
				return
			}
		}
		if c.err() != nil {
			fail(ErrForm)
		}
	}
}

// FirstOffset returns the offset of the first entry stored under a key, or 0 if it
// cannot be read.
func FirstOffset(key, value []byte) uint64 {
	n, size := binary.Uvarint(value)
	last := OffsetOf(key)
	if size <= 0 || n == 0 || n > last {
		return 0
	}
	return last - n + 1
}

func decodeEntry(b []byte) (Entry, error) {
	if len(b) == 0 {
		return Entry{}, ErrForm
	}
	e := Entry{Kind: b[0]}
	c := cutter{b: b[1:]}
	switch e.Kind {
	case EntryBatch:
		for range count(&c) {
			e.Writes = append(e.Writes, Written{ID: order.ID(c.uvarint()), First: c.uvarint(), Count: c.uvarint()})
		}
		if len(c.b) > 0 {
			c.partition(&e.Partition)
			for len(c.b) > 0 {
				e.Values = append(e.Values, string(c.bytes()))
			}
		}
	case EntryDropLog:
		e.Log = c.log()
	case EntryDropPartition:
		c.partition(&e.Partition)
	default:
		return Entry{}, ErrForm
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
