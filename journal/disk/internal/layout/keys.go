package layout

import (
	"bytes"
	"encoding/binary"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/internal/order"
)

// The first byte of a key says what is stored under it. Numbers are big-endian,
// so that keys sort as their numbers do.
const (
	KindCommit  = 'c' // offset of the last batch of a group: what the group's batches wrote
	KindRemoval = 'd' // log id: a removal that is not finished
	KindHead    = 'h' // log name: its head
	KindIndex   = 'i' // escaped index key, log id: its value
	KindClaim   = 'k' // claim name: its holder
	KindMeta    = 'm' // name: epoch, mark of the index
	KindName    = 'n' // log id: log name
	KindRecord  = 'r' // log id, sequence: the record
	KindValue   = 'v' // partition, name: a durable value
	KindExpiry  = 'x' // milliseconds, claim name: a claim to be swept
	KindLazy    = 'z' // partition, name: a lazy value
)

// Keys of the metadata.
var (
	KeyPlace = []byte{KindMeta, 'a'} // of a copy: where in its log the store is
	KeyEpoch = []byte{KindMeta, 'e'}
	KeyIndex = []byte{KindMeta, 'i'} // present while index and claims are complete
	KeyLast  = []byte{KindMeta, 'o'} // last offset, so that opening need not search for it
	KeyGoing = []byte{KindMeta, 'r'} // present while logs are being removed
)

const commitKeyLen = 1 + 8

// CommitKey appends the key of the entries of a group; offset is that of its last
// batch.
func CommitKey(b []byte, offset uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, KindCommit), offset)
}

// OffsetOf returns the offset in the key of a commit.
func OffsetOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[1:]) }

// RemovalKey appends the key of a log's unfinished removal.
func RemovalKey(b []byte, id order.ID) []byte {
	return binary.BigEndian.AppendUint64(append(b, KindRemoval), uint64(id))
}

// NameKey appends the key of a log's name.
func NameKey(b []byte, id order.ID) []byte {
	return binary.BigEndian.AppendUint64(append(b, KindName), uint64(id))
}

// ClaimKey appends the key of a claim.
func ClaimKey(b []byte, name string) []byte { return append(append(b, KindClaim), name...) }

// ExpiryKey appends the key that records when a claim expires.
func ExpiryKey(b []byte, ms int64, name string) []byte {
	b = binary.BigEndian.AppendUint64(append(b, KindExpiry), uint64(ms))
	return append(b, name...)
}

// HeadKey appends the key of a log's head. The name must be valid, as for all keys
// made of names.
func HeadKey(b []byte, log journal.LogName) []byte {
	b, _ = log.AppendBinary(append(b, KindHead))
	return b
}

// PartitionKey appends the prefix of a partition's values.
func PartitionKey(b []byte, kind byte, p journal.PartitionName) []byte {
	b, _ = p.AppendBinary(append(b, kind))
	return b
}

// ValueKey appends the key of a value, durable or lazy as kind says.
func ValueKey(b []byte, kind byte, key journal.ValueKey) []byte {
	return append(PartitionKey(b, kind, key.Partition), key.Name...)
}

const RecordKeyLen = 1 + 8 + 8

// PutRecordKey writes the key of a record to b, which must have length RecordKeyLen.
func PutRecordKey(b []byte, id order.ID, seq uint64) {
	b[0] = KindRecord
	binary.BigEndian.PutUint64(b[1:], uint64(id))
	binary.BigEndian.PutUint64(b[9:], seq)
}

// RecordKey appends the key of a record.
func RecordKey(b []byte, id order.ID, seq uint64) []byte {
	b = append(b, make([]byte, RecordKeyLen)...)
	PutRecordKey(b[len(b)-RecordKeyLen:], id, seq)
	return b
}

// SeqOf returns the sequence in the key of a record.
func SeqOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[9:]) }

// IndexKey appends the key of an index entry, escaped so that the log's id can
// follow it without changing the order: a zero byte becomes 00 ff, and 00 01
// ends the key.
func IndexKey(b []byte, key []byte, id order.ID) []byte {
	b = Escape(append(b, KindIndex), key)
	b = append(b, 0, 1)
	return binary.BigEndian.AppendUint64(b, uint64(id))
}

// Escape appends a key of the index so that it sorts as the key does.
func Escape(b []byte, key []byte) []byte {
	for {
		at := bytes.IndexByte(key, 0)
		if at < 0 {
			return append(b, key...)
		}
		b = append(append(b, key[:at]...), 0, 0xff)
		key = key[at+1:]
	}
}

// SplitIndexKey returns the index key and the log's id that IndexKey encoded.
func SplitIndexKey(b []byte) (key []byte, id order.ID, err error) {
	if len(b) < 1+2+8 || b[0] != KindIndex {
		return nil, 0, ErrKey
	}
	body := b[1 : len(b)-10]
	end := b[len(b)-10:]
	if end[0] != 0 || end[1] != 1 {
		return nil, 0, ErrKey
	}
	for {
		at := bytes.IndexByte(body, 0)
		if at < 0 {
			break
		}
		if at+1 >= len(body) || body[at+1] != 0xff {
			return nil, 0, ErrKey
		}
		key = append(append(key, body[:at]...), 0)
		body = body[at+2:]
	}
	return append(key, body...), order.ID(binary.BigEndian.Uint64(end[2:])), nil
}

// After returns the first key after all keys with the prefix, or nil if there is
// none.
func After(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
