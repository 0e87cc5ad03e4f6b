package layout

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/internal/order"
)

// sumLen is the length of the checksum at the end of every stored value. It covers the
// key and the value before it.
const sumLen = 4

// Castagnoli is the polynomial of all checksums.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendSum appends the checksum of the value that begins at from.
func AppendSum(b []byte, from int, key []byte) []byte {
	return binary.BigEndian.AppendUint32(b, checksum(key, b[from:]))
}

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Update(0, Castagnoli, key), Castagnoli, value)
}

// Checked verifies the checksum of a value and returns the value without it.
func Checked(key, value []byte) ([]byte, error) {
	at := len(value) - sumLen
	if at < 0 || binary.BigEndian.Uint32(value[at:]) != checksum(key, value[:at]) {
		return nil, ErrSum
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

func (c *cutter) bytes() []byte { return c.cut(c.uvarint()) }

// cut reads n bytes.
func (c *cutter) cut(n uint64) []byte {
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
		return ErrForm
	}
	return nil
}

func appendBytes(b, data []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// AppendHead encodes the head of a log, to be stored under key.
func AppendHead(b, key []byte, h order.Head) []byte {
	from := len(b)
	b = binary.AppendUvarint(b, uint64(h.ID))
	b = binary.AppendUvarint(b, h.Seq)
	b = binary.AppendUvarint(b, h.Offset)
	return AppendSum(b, from, key)
}

// DecodeHead decodes what AppendHead encoded.
func DecodeHead(key, value []byte) (order.Head, error) {
	value, err := Checked(key, value)
	if err != nil {
		return order.Head{}, err
	}
	c := cutter{b: value}
	h := order.Head{ID: order.ID(c.uvarint()), Seq: c.uvarint(), Offset: c.uvarint()}
	return h, c.err()
}

// AppendClaim encodes a claim and its holder, to be stored under key.
func AppendClaim(b, key []byte, h *order.Held) []byte {
	from := len(b)
	b = binary.AppendUvarint(b, uint64(h.ID))
	b = binary.AppendUvarint(b, h.Seq)
	b = binary.AppendUvarint(b, h.Offset)
	b = binary.AppendUvarint(b, uint64(Milliseconds(h.Expires)))
	b, _ = h.Log.AppendBinary(b)
	return AppendSum(b, from, key)
}

// DecodeClaim decodes what AppendClaim encoded; the claim's name is in the key.
func DecodeClaim(key, value []byte) (*order.Held, error) {
	value, err := Checked(key, value)
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

// Milliseconds returns a time in Unix milliseconds, and 0 for the zero time, which
// means never.
func Milliseconds(t time.Time) int64 {
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

// AppendValue encodes a value, to be stored under key.
func AppendValue(b, key []byte, v journal.Value) []byte {
	from := len(b)
	b = binary.AppendUvarint(b, v.Version)
	b = append(b, v.Data...)
	return AppendSum(b, from, key)
}

// DecodeValue decodes what AppendValue encoded.
func DecodeValue(key, value []byte) (journal.Value, error) {
	value, err := Checked(key, value)
	if err != nil {
		return journal.Value{}, err
	}
	c := cutter{b: value}
	v := journal.Value{Version: c.uvarint()}
	v.Data = append([]byte{}, c.b...)
	if c.bad {
		return journal.Value{}, ErrForm
	}
	return v, nil
}

// AppendName encodes the name of a log, to be stored under key.
func AppendName(b, key []byte, log journal.LogName) []byte {
	from := len(b)
	b, _ = log.AppendBinary(b)
	return AppendSum(b, from, key)
}

// DecodeName decodes what AppendName encoded.
func DecodeName(key, value []byte) (journal.LogName, error) {
	value, err := Checked(key, value)
	if err != nil {
		return journal.LogName{}, err
	}
	c := cutter{b: value}
	name := c.log()
	return name, c.err()
}

// Removal is one log that is being removed.
type Removal struct {
	ID     order.ID
	Log    journal.LogName
	Offset uint64
}

// AppendRemoval encodes a removal that is not finished, to be stored under key.
func AppendRemoval(b, key []byte, r Removal) []byte {
	from := len(b)
	b = binary.AppendUvarint(b, r.Offset)
	b, _ = r.Log.AppendBinary(b)
	return AppendSum(b, from, key)
}

// DecodeRemoval decodes what AppendRemoval encoded.
func DecodeRemoval(key, value []byte) (Removal, error) {
	value, err := Checked(key, value)
	if err != nil {
		return Removal{}, err
	}
	c := cutter{b: value}
	r := Removal{Offset: c.uvarint(), Log: c.log()}
	if len(key) != 9 {
		return Removal{}, ErrKey
	}
	r.ID = order.ID(binary.BigEndian.Uint64(key[1:]))
	return r, c.err()
}

// AppendNumber encodes a number, to be stored under key.
func AppendNumber(b, key []byte, n uint64) []byte {
	from := len(b)
	return AppendSum(binary.AppendUvarint(b, n), from, key)
}

// DecodeNumber decodes what AppendNumber encoded.
func DecodeNumber(key, value []byte) (uint64, error) {
	value, err := Checked(key, value)
	if err != nil {
		return 0, err
	}
	c := cutter{b: value}
	return c.uvarint(), c.err()
}
