package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/internal/order"
)

// Every stored value ends in a checksum over its key and what comes before.
const sumLen = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errSum  = errors.New("the checksum does not match")
	errForm = errors.New("the form is not known")
)

// appendSum ends a value that begins at from.
func appendSum(b []byte, from int, key []byte) []byte {
	return binary.BigEndian.AppendUint32(b, checksum(key, b[from:]))
}

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, key), castagnoli, value)
}

// checked returns a value without its checksum.
func checked(key, value []byte) ([]byte, error) {
	at := len(value) - sumLen
	if at < 0 || binary.BigEndian.Uint32(value[at:]) != checksum(key, value[:at]) {
		return nil, errSum
	}
	return value[:at], nil
}

// cutter reads a value from its front. After the first failure it reads zeros.
type cutter struct {
	b   []byte
	bad bool
}

func (c *cutter) uvarint() uint64 {
	n, size := binary.Uvarint(c.b)
	if size <= 0 {
		c.b, c.bad = nil, true
		return 0
	}
	c.b = c.b[size:]
	return n
}

func (c *cutter) bytes() []byte {
	n := c.uvarint()
	if n > uint64(len(c.b)) {
		c.b, c.bad = nil, true
		return nil
	}
	out := c.b[:n:n]
	c.b = c.b[n:]
	return out
}

func (c *cutter) log() journal.LogName {
	name, rest, err := journal.CutLogName(c.b)
	if err != nil {
		c.b, c.bad = nil, true
	} else {
		c.b = rest
	}
	return name
}

func (c *cutter) err() error {
	if c.bad || len(c.b) > 0 {
		return errForm
	}
	return nil
}

func appendBytes(b, data []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendHead(b, key []byte, h order.Head) []byte {
	from := len(b)
	b = binary.AppendUvarint(b, uint64(h.ID))
	b = binary.AppendUvarint(b, h.Seq)
	b = binary.AppendUvarint(b, h.Offset)
	return appendSum(b, from, key)
}

func decodeHead(key, value []byte) (order.Head, error) {
	value, err := checked(key, value)
	if err != nil {
		return order.Head{}, err
	}
	c := cutter{b: value}
	h := order.Head{ID: order.ID(c.uvarint()), Seq: c.uvarint(), Offset: c.uvarint()}
	return h, c.err()
}

func appendClaim(b, key []byte, h *order.Held) []byte {
	from := len(b)
	b = binary.AppendUvarint(b, uint64(h.ID))
	b = binary.AppendUvarint(b, h.Seq)
	b = binary.AppendUvarint(b, h.Offset)
	b = binary.AppendUvarint(b, uint64(milliseconds(h.Expires)))
	b, _ = h.Log.AppendBinary(b)
	return appendSum(b, from, key)
}

func decodeClaim(key, value []byte) (*order.Held, error) {
	value, err := checked(key, value)
	if err != nil {
		return nil, err
	}
	c := cutter{b: value}
	h := &order.Held{ID: order.ID(c.uvarint())}
	h.Name, h.Incarnation = string(key[1:]), h.ID.Incarnation()
	h.Seq, h.Offset = c.uvarint(), c.uvarint()
	h.Expires = fromMilliseconds(int64(c.uvarint()))
	h.Log = c.log()
	return h, c.err()
}

// milliseconds is 0 for a time that never comes.
func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(t.UnixMilli(), 1)
}

func fromMilliseconds(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func appendValue(b, key []byte, v journal.Value) []byte {
	from := len(b)
	b = binary.AppendUvarint(b, v.Version)
	b = append(b, v.Data...)
	return appendSum(b, from, key)
}

func decodeValue(key, value []byte) (journal.Value, error) {
	value, err := checked(key, value)
	if err != nil {
		return journal.Value{}, err
	}
	c := cutter{b: value}
	v := journal.Value{Version: c.uvarint()}
	v.Data = append([]byte{}, c.b...)
	if c.bad {
		return journal.Value{}, errForm
	}
	return v, nil
}

func appendName(b, key []byte, log journal.LogName) []byte {
	from := len(b)
	b, _ = log.AppendBinary(b)
	return appendSum(b, from, key)
}

func decodeName(key, value []byte) (journal.LogName, error) {
	value, err := checked(key, value)
	if err != nil {
		return journal.LogName{}, err
	}
	c := cutter{b: value}
	name := c.log()
	return name, c.err()
}

// removal is one log that is being removed.
type removal struct {
	id     order.ID
	log    journal.LogName
	offset uint64
}

func appendRemoval(b, key []byte, r removal) []byte {
	from := len(b)
	b = binary.AppendUvarint(b, r.offset)
	b, _ = r.log.AppendBinary(b)
	return appendSum(b, from, key)
}

func decodeRemoval(key, value []byte) (removal, error) {
	value, err := checked(key, value)
	if err != nil {
		return removal{}, err
	}
	c := cutter{b: value}
	r := removal{offset: c.uvarint(), log: c.log()}
	if len(key) != 9 {
		return removal{}, errKey
	}
	r.id = order.ID(binary.BigEndian.Uint64(key[1:]))
	return r, c.err()
}

func appendNumber(b, key []byte, n uint64) []byte {
	from := len(b)
	return appendSum(binary.AppendUvarint(b, n), from, key)
}

func decodeNumber(key, value []byte) (uint64, error) {
	value, err := checked(key, value)
	if err != nil {
		return 0, err
	}
	c := cutter{b: value}
	return c.uvarint(), c.err()
}

// damaged names what could not be read.
func damaged(err error, what string, args ...any) error {
	return &journal.DamageError{What: fmt.Sprintf(what, args...), Err: err}
}
