package layout

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"slices"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/internal/order"
)

// A stored record is: a byte for its form and flags; its effects on the index and
// the claims, preceded by their length, if it has any; its data; the offset of its
// batch; a checksum over all that and over the record's place (log and sequence).
// Offset and place are known last, so they are summed last.
const (
	recordForm    = 1 << 4
	recordEffects = 1
	recordRefs    = 2 // values of index entries may refer to others; since format 2
	recordTail    = 8 + sumLen
)

// With recordRefs, a number comes before the value of each index entry: which value it
// is equal to, or the value's length plus ownValue, and then the value.
const (
	dataValue     = iota // the record's data
	previousValue        // the value of the entry before
	ownValue
)

// leastRef is the length of the shortest value that is referred to.
const leastRef = 16

// Draft is a record before it has a place.
type Draft struct {
	head []byte // form and effects
	data []byte
	sum  uint32
}

// NewDraft encodes the parts of a record that do not depend on its place. It appends
// them to room and returns the result; the draft is valid until that memory is reused.
func NewDraft(r *journal.Record, room []byte) (Draft, []byte) {
	d := Draft{data: r.Data}
	if len(r.Put)+len(r.Remove)+len(r.Take)+len(r.Release) == 0 {
		d.head = plainHead
	} else {
		refs := hasRefs(r)
		from, size, form := len(room), effectsSize(r, refs), byte(recordForm|recordEffects)
		if refs {
			form |= recordRefs
		}
		room = append(slices.Grow(room, 1+binary.MaxVarintLen64+size), form)
		room = appendEffects(binary.AppendUvarint(room, uint64(size)), r, refs)
		d.head = room[from:len(room):len(room)]
	}
	d.sum = crc32.Update(crc32.Update(0, Castagnoli, d.head), Castagnoli, d.data)
	return d, room
}

var plainHead = []byte{recordForm}

func (d *Draft) Size() int { return len(d.head) + len(d.data) + recordTail }

// Put writes the record's value to b, which must have exactly its size. The place is
// summed directly from key and value, because a copy would be an allocation.
func (d *Draft) Put(b, key []byte, offset uint64) {
	n := copy(b, d.head)
	n += copy(b[n:], d.data)
	binary.BigEndian.PutUint64(b[n:], offset)
	sum := crc32.Update(d.sum, Castagnoli, key[1:RecordKeyLen])
	binary.BigEndian.PutUint32(b[n+8:], crc32.Update(sum, Castagnoli, b[n:n+8]))
}

func placeSum(sum uint32, id order.ID, seq, offset uint64) uint32 {
	var place [24]byte
	binary.BigEndian.PutUint64(place[:], uint64(id))
	binary.BigEndian.PutUint64(place[8:], seq)
	binary.BigEndian.PutUint64(place[16:], offset)
	return crc32.Update(sum, Castagnoli, place[:])
}

// Stored is a record as read; its slices point into the value.
type Stored struct {
	Offset  uint64
	Data    []byte
	Effects []byte
	refs    bool // the effects are encoded with recordRefs
}

// DecodeRecord decodes the record at the given place. It returns an error if the
// value is of another place.
func DecodeRecord(value []byte, id order.ID, seq uint64) (Stored, error) {
	at := len(value) - recordTail
	if at < 1 {
		return Stored{}, ErrForm
	}
	s := Stored{Offset: binary.BigEndian.Uint64(value[at:])}
	sum := placeSum(crc32.Update(0, Castagnoli, value[:at]), id, seq, s.Offset)
	if binary.BigEndian.Uint32(value[at+8:]) != sum {
		return Stored{}, ErrSum
	}
	switch value[0] {
	case recordForm:
		s.Data = value[1:at]
	case recordForm | recordEffects, recordForm | recordEffects | recordRefs:
		s.refs = value[0]&recordRefs != 0
		c := cutter{b: value[1:at]}
		s.Effects = c.bytes()
		if c.bad {
			return Stored{}, ErrForm
		}
		s.Data = c.b
	default:
		return Stored{}, ErrForm
	}
	return s, nil
}

// reference returns which value the value of the i-th index entry is equal to, or
// ownValue.
func reference(r *journal.Record, i int) int {
	value := r.Put[i].Value
	switch {
	case len(value) < leastRef:
	case bytes.Equal(value, r.Data):
		return dataValue
	case i > 0 && bytes.Equal(value, r.Put[i-1].Value):
		return previousValue
	}
	return ownValue
}

// hasRefs reports whether any value of a record refers to another one.
func hasRefs(r *journal.Record) bool {
	for i := range r.Put {
		if reference(r, i) != ownValue {
			return true
		}
	}
	return false
}

// effectsSize returns how many bytes appendEffects writes.
func effectsSize(r *journal.Record, refs bool) int {
	n := sizeOf(len(r.Put)) + sizeOf(len(r.Remove)) + sizeOf(len(r.Take)) + sizeOf(len(r.Release))
	for i := range r.Put {
		n += sizeOf(len(r.Put[i].Key)) + len(r.Put[i].Key)
		size := len(r.Put[i].Value)
		switch {
		case !refs:
			n += sizeOf(size) + size
		case reference(r, i) == ownValue:
			n += sizeOf(size+ownValue) + size
		default:
			n++
		}
	}
	for _, key := range r.Remove {
		n += sizeOf(len(key)) + len(key)
	}
	for i := range r.Take {
		n += sizeOf(len(r.Take[i].Name)) + len(r.Take[i].Name) + sizeOf(Milliseconds(r.Take[i].Expires))
	}
	for _, name := range r.Release {
		n += sizeOf(len(name)) + len(name)
	}
	return n
}

// sizeOf returns how many bytes a number takes as a varint.
func sizeOf[N int | int64](n N) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }

func appendEffects(b []byte, r *journal.Record, refs bool) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.Put)))
	for i, p := range r.Put {
		b = appendBytes(b, p.Key)
		if !refs {
			b = appendBytes(b, p.Value)
		} else if ref := reference(r, i); ref != ownValue {
			b = append(b, byte(ref))
		} else {
			b = append(binary.AppendUvarint(b, uint64(len(p.Value)+ownValue)), p.Value...)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(r.Remove)))
	for _, key := range r.Remove {
		b = appendBytes(b, key)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Take)))
	for _, t := range r.Take {
		b = binary.AppendUvarint(appendString(b, t.Name), uint64(Milliseconds(t.Expires)))
	}
	b = binary.AppendUvarint(b, uint64(len(r.Release)))
	for _, name := range r.Release {
		b = appendString(b, name)
	}
	return b
}

// DecodeEffects returns a record with all its effects, without its data. Its slices
// point into the stored value.
func (s *Stored) DecodeEffects() (journal.Record, error) {
	var r journal.Record
	if s.Effects == nil {
		return r, nil
	}
	c := cutter{b: s.Effects}
	var previous []byte
	for range count(&c) {
		key := c.bytes()
		previous = s.value(&c, previous)
		r.Put = append(r.Put, journal.IndexPut{Key: key, Value: previous})
	}
	for range count(&c) {
		r.Remove = append(r.Remove, c.bytes())
	}
	for range count(&c) {
		r.Take = append(r.Take, journal.Take{Name: string(c.bytes()), Expires: fromMilliseconds(int64(c.uvarint()))})
	}
	for range count(&c) {
		r.Release = append(r.Release, string(c.bytes()))
	}
	return r, c.err()
}

// value reads the value of an index entry.
func (s *Stored) value(c *cutter, previous []byte) []byte {
	if !s.refs {
		return c.bytes()
	}
	switch ref := c.uvarint(); ref {
	case dataValue:
		if len(s.Data) > journal.MaxIndexValue {
			c.b, c.bad = nil, true
			return nil
		}
		return s.Data
	case previousValue:
		return previous
	default:
		return c.cut(ref - ownValue)
	}
}

// count reads a number of elements, each of which takes at least one byte.
func count(c *cutter) uint64 {
	n := c.uvarint()
	if n > uint64(len(c.b)) {
		c.b, c.bad = nil, true
		return 0
	}
	return n
}
