package disk

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/internal/order"
)

// The first byte of a key says what is stored under it. Numbers are big-endian,
// so that keys sort as their numbers do.
const (
	kindCommit  = 'c' // offset: what the batches of a group wrote, up to this one
	kindRemoval = 'd' // log id: a removal that is not finished
	kindHead    = 'h' // log name: where it ends
	kindIndex   = 'i' // escaped index key, log id: its value
	kindClaim   = 'k' // claim name: its holder
	kindMeta    = 'm' // name: epoch, mark of the index
	kindName    = 'n' // log id: log name
	kindRecord  = 'r' // log id, sequence: the record
	kindValue   = 'v' // partition, name: a durable value
	kindExpiry  = 'x' // milliseconds, claim name: a claim to be swept
	kindLazy    = 'z' // partition, name: a lazy value
)

var (
	keyEpoch = []byte{kindMeta, 'e'}
	keyIndex = []byte{kindMeta, 'i'} // present when index and claims are complete
	keyLast  = []byte{kindMeta, 'o'} // last offset, so that opening need not look for it
	keyGoing = []byte{kindMeta, 'r'} // present while logs are being removed
)

const commitKeyLen = 1 + 8

func commitKey(b []byte, offset uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, kindCommit), offset)
}

func removalKey(b []byte, id order.ID) []byte {
	return binary.BigEndian.AppendUint64(append(b, kindRemoval), uint64(id))
}

func nameKey(b []byte, id order.ID) []byte {
	return binary.BigEndian.AppendUint64(append(b, kindName), uint64(id))
}

func claimKey(b []byte, name string) []byte { return append(append(b, kindClaim), name...) }

func expiryKey(b []byte, ms int64, name string) []byte {
	b = binary.BigEndian.AppendUint64(append(b, kindExpiry), uint64(ms))
	return append(b, name...)
}

// headKey needs a valid name, as all keys made of names do.
func headKey(b []byte, log journal.LogName) []byte {
	b, _ = log.AppendBinary(append(b, kindHead))
	return b
}

func partitionKey(b []byte, kind byte, p journal.PartitionName) []byte {
	b, _ = p.AppendBinary(append(b, kind))
	return b
}

func valueKey(b []byte, kind byte, key journal.ValueKey) []byte {
	return append(partitionKey(b, kind, key.Partition), key.Name...)
}

const recordKeyLen = 1 + 8 + 8

func putRecordKey(b []byte, id order.ID, seq uint64) {
	b[0] = kindRecord
	binary.BigEndian.PutUint64(b[1:], uint64(id))
	binary.BigEndian.PutUint64(b[9:], seq)
}

func recordKey(b []byte, id order.ID, seq uint64) []byte {
	b = append(b, make([]byte, recordKeyLen)...)
	putRecordKey(b[len(b)-recordKeyLen:], id, seq)
	return b
}

// An index key is escaped so that the log's id can follow it without changing
// the order: a zero byte becomes 00 ff, and 00 01 ends the key.
func indexKey(b []byte, key []byte, id order.ID) []byte {
	b = escape(append(b, kindIndex), key)
	b = append(b, 0, 1)
	return binary.BigEndian.AppendUint64(b, uint64(id))
}

func escape(b []byte, key []byte) []byte {
	for {
		at := bytes.IndexByte(key, 0)
		if at < 0 {
			return append(b, key...)
		}
		b = append(append(b, key[:at]...), 0, 0xff)
		key = key[at+1:]
	}
}

var errKey = errors.New("not a key that this engine writes")

// splitIndexKey undoes indexKey.
func splitIndexKey(b []byte) (key []byte, id order.ID, err error) {
	if len(b) < 1+2+8 || b[0] != kindIndex {
		return nil, 0, errKey
	}
	body := b[1 : len(b)-10]
	end := b[len(b)-10:]
	if end[0] != 0 || end[1] != 1 {
		return nil, 0, errKey
	}
	for {
		at := bytes.IndexByte(body, 0)
		if at < 0 {
			break
		}
		if at+1 >= len(body) || body[at+1] != 0xff {
			return nil, 0, errKey
		}
		key = append(append(key, body[:at]...), 0)
		body = body[at+2:]
	}
	return append(key, body...), order.ID(binary.BigEndian.Uint64(end[2:])), nil
}

// after returns the first key that does not have the prefix; nil means that
// there is none.
func after(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
