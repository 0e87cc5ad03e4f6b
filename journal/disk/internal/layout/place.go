package layout

import "encoding/binary"

// Place is the position of a copy in the log that it is a copy of.
type Place struct {
	Epoch uint64
	Log   [16]byte // identifies the log; another log with the same name has another ID
	Seq   uint64   // of the last message that was applied
	Term  uint64   // in which the next is expected
	Chain [16]byte // of that message
}

const placeLen = 8 + 16 + 8 + 8 + 16

// AppendPlace encodes a place, to be stored under KeyPlace.
func AppendPlace(b []byte, p Place) []byte {
	from := len(b)
	b = binary.BigEndian.AppendUint64(b, p.Epoch)
	b = append(b, p.Log[:]...)
	b = binary.BigEndian.AppendUint64(b, p.Seq)
	b = binary.BigEndian.AppendUint64(b, p.Term)
	b = append(b, p.Chain[:]...)
	return AppendSum(b, from, KeyPlace)
}

// DecodePlace decodes what AppendPlace encoded.
func DecodePlace(value []byte) (p Place, err error) {
	value, err = Checked(KeyPlace, value)
	if err != nil {
		return p, err
	}
	if len(value) != placeLen {
		return p, ErrForm
	}
	p.Epoch = binary.BigEndian.Uint64(value)
	copy(p.Log[:], value[8:])
	p.Seq = binary.BigEndian.Uint64(value[24:])
	p.Term = binary.BigEndian.Uint64(value[32:])
	copy(p.Chain[:], value[40:])
	return p, nil
}
