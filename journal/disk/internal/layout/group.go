package layout

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/internal/order"
)

// GroupContents lists what a group of another process changes.
type GroupContents struct {
	Logs     []journal.LogName       // whose heads it sets or deletes, or that it drops
	Dropped  []journal.PartitionName // whole partitions
	Removals bool                    // it begins or ends removals
	Heads    []HeadOp                // operations on heads, in their order
}

// HeadOp is an operation that sets or deletes the head of a log: bytes From to To of
// the batch.
type HeadOp struct {
	From, To int
	Key      []byte // part of the batch
}

// BatchHeader is the length of the header of a Pebble batch: its sequence number and
// the count of its operations.
const BatchHeader = 12

// CheckGroup validates a Pebble batch from another process before it is passed to
// Pebble, which trusts its batches: every operation must be one that an engine
// writes, of a partition for which mine returns true, and the entries must be those
// of count batches from offset first on.
func CheckGroup(repr []byte, first, count uint64, mine func(journal.PartitionName) bool) (found GroupContents, err error) {
	if len(repr) < BatchHeader {
		return found, fmt.Errorf("%d bytes are too few for a batch", len(repr))
	}
	if !bytes.Equal(repr[:8], make([]byte, 8)) {
		return found, fmt.Errorf("the batch is numbered already")
	}
	claimed, ops := binary.LittleEndian.Uint32(repr[8:]), uint32(0)
	g := groupCheck{found: &found, mine: mine}
	if count > 0 {
		g.last = first + count - 1
		if first == 0 || g.last < first {
			return found, fmt.Errorf("offsets from %d on, %d of them, do not exist", first, count)
		}
	}
	g.count = count
	for rest := repr[BatchHeader:]; len(rest) > 0; ops++ {
		kind, from := pebble.InternalKeyKind(rest[0]), len(repr)-len(rest)
		rest = rest[1:]
		var key, value []byte
		if key, rest, err = cutString(rest); err != nil {
			return found, err
		}
		if kind != pebble.InternalKeyKindDelete {
			if value, rest, err = cutString(rest); err != nil {
				return found, err
			}
		}
		if err := g.operation(kind, key, value); err != nil {
			return found, fmt.Errorf("operation %d on key %.40q: %w", ops+1, key, err)
		}
		if key[0] == KindHead {
			found.Heads = append(found.Heads, HeadOp{From: from, To: len(repr) - len(rest), Key: key})
		}
	}
	if ops != claimed {
		return found, fmt.Errorf("the batch has %d operations and says %d", ops, claimed)
	}
	if count > 0 && (!g.entries || !g.place) {
		return found, fmt.Errorf("the entries of offsets %d to %d are missing", first, g.last)
	}
	return found, nil
}

func cutString(b []byte) (s, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, ErrForm
	}
	return b[size : size+int(n)], b[size+int(n):], nil
}

// groupCheck is the state of checking a group.
type groupCheck struct {
	found          *GroupContents
	mine           func(journal.PartitionName) bool
	last, count    uint64
	entries, place bool
}

func (g *groupCheck) operation(kind pebble.InternalKeyKind, key, value []byte) error {
	if len(key) == 0 {
		return ErrKey
	}
	switch kind {
	case pebble.InternalKeyKindSet:
		return g.set(key, value)
	case pebble.InternalKeyKindDelete:
		if key[0] == KindCommit || key[0] == KindRecord || bytes.Equal(key, KeyLast) {
			return fmt.Errorf("it is not to be deleted")
		}
		return g.key(key)
	case pebble.InternalKeyKindRangeDelete:
		return g.deleteRange(key, value)
	}
	return fmt.Errorf("its kind is %d", kind)
}

// set checks a key and its value. A group without batches is upkeep, which sets
// only lazy values.
func (g *groupCheck) set(key, value []byte) error {
	if g.count == 0 && key[0] != KindLazy {
		return fmt.Errorf("a group without batches sets it")
	}
	switch key[0] {
	case KindCommit:
		return g.commit(key, value)
	case KindRecord:
		return g.record(key, value)
	case KindMeta:
		if bytes.Equal(key, KeyLast) {
			n, err := DecodeNumber(key, value)
			if err == nil && n != g.last {
				err = fmt.Errorf("it says %d, the group ends at %d", n, g.last)
			}
			g.place = true
			return err
		}
	}
	if err := g.key(key); err != nil {
		return err
	}
	return g.value(key, value)
}

// value checks the value of a key that may be set.
func (g *groupCheck) value(key, value []byte) error {
	switch key[0] {
	case KindName:
		log, err := DecodeName(key, value)
		return g.belongs(log, err)
	case KindRemoval:
		r, err := DecodeRemoval(key, value)
		return g.belongs(r.Log, err)
	case KindClaim:
		h, err := DecodeClaim(key, value)
		if err != nil {
			return err
		}
		return g.belongs(h.Log, nil)
	case KindHead:
		h, err := DecodeHead(key, value)
		if err == nil && h.Offset > g.last {
			err = fmt.Errorf("it is of offset %d, the group ends at %d", h.Offset, g.last)
		}
		return err
	case KindIndex:
		_, err := Checked(key, value)
		return err
	case KindValue, KindLazy:
		value, err := Checked(key, value)
		if _, size := binary.Uvarint(value); err == nil && size <= 0 {
			err = ErrForm
		}
		return err
	}
	return nil
}

// record checks that a record is of a batch of this group.
func (g *groupCheck) record(key, value []byte) error {
	if err := length(key, RecordKeyLen, RecordKeyLen); err != nil {
		return err
	}
	r, err := DecodeRecord(value, order.ID(binary.BigEndian.Uint64(key[1:])), SeqOf(key))
	if err == nil && (r.Offset > g.last || r.Offset <= g.last-g.count) {
		err = fmt.Errorf("it is of offset %d, the group has %d to %d", r.Offset, g.last-g.count+1, g.last)
	}
	return err
}

// key checks a key that is set or deleted.
func (g *groupCheck) key(key []byte) error {
	switch key[0] {
	case KindRemoval:
		g.found.Removals = true
		return length(key, 9, 9)
	case KindName:
		return length(key, 9, 9)
	case KindClaim:
		return length(key, 2, 1+journal.MaxKey)
	case KindExpiry:
		return length(key, 10, 9+journal.MaxKey)
	case KindHead:
		log, rest, err := journal.CutLogName(key[1:])
		if err != nil || len(rest) > 0 {
			return ErrKey
		}
		g.found.Logs = append(g.found.Logs, log)
		return g.partition(log.Of())
	case KindIndex:
		_, _, err := SplitIndexKey(key)
		return err
	case KindValue, KindLazy:
		p, name, err := journal.CutPartitionName(key[1:])
		if err != nil || len(name) == 0 || len(name) > journal.MaxKey {
			return ErrKey
		}
		return g.partition(p)
	case KindMeta:
		if bytes.Equal(key, KeyGoing) {
			g.found.Removals = true
			return nil
		}
	}
	return ErrKey
}

func (g *groupCheck) commit(key, value []byte) error {
	if len(key) != commitKeyLen || OffsetOf(key) != g.last || g.count == 0 || g.entries {
		return fmt.Errorf("the group ends at offset %d", g.last)
	}
	g.entries = true
	seen := uint64(0)
	for offset, decode := range DecodeEntries(key, value) {
		entry, err := decode()
		if err == nil {
			err = g.entry(&entry)
		}
		if err != nil {
			return err
		}
		if offset != 0 {
			seen++
		}
	}
	if seen != g.count {
		return fmt.Errorf("it has %d entries, the group has %d", seen, g.count)
	}
	return nil
}

func (g *groupCheck) entry(e *Entry) error {
	switch {
	case e.Kind == EntryDropLog:
		g.found.Logs = append(g.found.Logs, e.Log)
		return g.partition(e.Log.Of())
	case e.Kind == EntryDropPartition:
		g.found.Dropped = append(g.found.Dropped, e.Partition)
		return g.partition(e.Partition)
	case len(e.Values) > 0:
		return g.partition(e.Partition)
	}
	return nil
}

// deleteRange accepts the two kinds of ranges that an engine deletes: records of one
// log, and all values of a partition.
func (g *groupCheck) deleteRange(from, to []byte) error {
	switch from[0] {
	case KindRecord:
		if len(from) == RecordKeyLen && len(to) == RecordKeyLen && bytes.Equal(from[:9], to[:9]) && SeqOf(from) < SeqOf(to) {
			return nil
		}
	case KindValue, KindLazy:
		p, rest, err := journal.CutPartitionName(from[1:])
		if err == nil && len(rest) == 0 && bytes.Equal(to, After(from)) {
			return g.partition(p)
		}
	}
	return fmt.Errorf("the range to %.40q is not to be deleted", to)
}

func (g *groupCheck) belongs(log journal.LogName, err error) error {
	if err != nil {
		return err
	}
	return g.partition(log.Of())
}

func (g *groupCheck) partition(p journal.PartitionName) error {
	if !g.mine(p) {
		return fmt.Errorf("partition %v belongs to another shard", p)
	}
	return nil
}

func length(key []byte, least, most int) error {
	if len(key) < least || len(key) > most {
		return ErrKey
	}
	return nil
}
