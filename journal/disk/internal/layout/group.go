package layout

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/parley-hub/parley/journal"
)

// GroupContents is what a group of another process touches.
type GroupContents struct {
	Logs     []journal.LogName       // whose heads it sets or deletes, or that it drops
	Dropped  []journal.PartitionName // whole partitions
	Removals bool                    // it begins or ends removals
}

const batchHeader = 12 // sequence number and count

// CheckGroup looks through a batch of Pebble's that came from elsewhere before it
// is given to Pebble, which trusts its batches: every operation must be one that
// an engine writes, of a partition that belongs here, and the entries must be
// those of count batches from offset first on.
func CheckGroup(repr []byte, first, count uint64, mine func(journal.PartitionName) bool) (found GroupContents, err error) {
	if len(repr) < batchHeader {
		return found, fmt.Errorf("%d bytes are no batch", len(repr))
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
	for rest := repr[batchHeader:]; len(rest) > 0; ops++ {
		kind := pebble.InternalKeyKind(rest[0])
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

// groupCheck is how far a group was looked through.
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
		return g.key(key, nil)
	case pebble.InternalKeyKindRangeDelete:
		return g.deleteRange(key, value)
	}
	return fmt.Errorf("its kind is %d", kind)
}

func (g *groupCheck) set(key, value []byte) error {
	switch key[0] {
	case KindCommit:
		return g.commit(key, value)
	case KindName:
		log, err := DecodeName(key, value)
		if err != nil {
			return err
		}
		return g.partition(log.Of())
	case KindMeta:
		if bytes.Equal(key, KeyLast) {
			n, err := DecodeNumber(key, value)
			if err == nil && (n != g.last || g.count == 0) {
				err = fmt.Errorf("it says %d, the group ends at %d", n, g.last)
			}
			g.place = true
			return err
		}
	}
	return g.key(key, value)
}

// key checks a key that is set or deleted.
func (g *groupCheck) key(key, _ []byte) error {
	switch key[0] {
	case KindRemoval:
		g.found.Removals = true
		return length(key, 9, 9)
	case KindName:
		return length(key, 9, 9)
	case KindRecord:
		return length(key, RecordKeyLen, RecordKeyLen)
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
		if err != nil {
			return err
		}
		if offset != 0 {
			seen++
		}
		switch entry.Kind {
		case EntryDropLog:
			g.found.Logs = append(g.found.Logs, entry.Log)
		case EntryDropPartition:
			g.found.Dropped = append(g.found.Dropped, entry.Partition)
		}
	}
	if seen != g.count {
		return fmt.Errorf("it has %d entries, the group has %d", seen, g.count)
	}
	return nil
}

// deleteRange takes the two ranges that are ever deleted: records of one log, and
// all values of a partition.
func (g *groupCheck) deleteRange(from, to []byte) error {
	switch from[0] {
	case KindRecord:
		if len(from) == RecordKeyLen && len(to) == RecordKeyLen && bytes.Equal(from[:9], to[:9]) {
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
