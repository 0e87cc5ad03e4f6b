package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Bounds of what a body may hold.
const (
	MaxGroup = 64 << 20 // bytes of a group, its parts together
	MaxParts = 1 << 16
	MaxNode  = 255
)

// Format is the version of the contents of groups; every fence has it. A node that
// does not know it applies nothing after that fence.
const Format = 2

var errBody = errors.New("the body is not of its kind")

// FenceBody begins a term.
type FenceBody struct {
	Epoch  uint64
	Format uint32
	Base   uint64   // offset of the last batch before the fence
	Nonce  [16]byte // makes every fence unique
	Node   string
}

// Encode encodes a fence's body.
func (f *FenceBody) Encode() []byte {
	b := binary.BigEndian.AppendUint64(nil, f.Epoch)
	b = binary.BigEndian.AppendUint32(b, f.Format)
	b = binary.BigEndian.AppendUint64(b, f.Base)
	b = append(b, f.Nonce[:]...)
	return append(b, f.Node...)
}

// DecodeFence decodes a fence's body.
func DecodeFence(b []byte) (f FenceBody, err error) {
	const fixed = 8 + 4 + 8 + 16
	if len(b) < fixed || len(b) > fixed+MaxNode {
		return f, errBody
	}
	f.Epoch, f.Format, f.Base = binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint64(b[12:])
	copy(f.Nonce[:], b[20:])
	f.Node = string(b[fixed:])
	return f, nil
}

// GroupBody is what one commit wrote.
type GroupBody struct {
	First, Count uint64
	Hints        [][]byte // none, or one for each batch
	Batch        []byte
}

// Encode encodes a group's body. It omits the hints if all are empty.
func (g *GroupBody) Encode() []byte {
	size, hinted := 32+len(g.Batch), false
	for _, h := range g.Hints {
		size += len(h) + 5
		hinted = hinted || len(h) > 0
	}
	b := binary.AppendUvarint(make([]byte, 0, size), g.First)
	b = binary.AppendUvarint(b, g.Count)
	if !hinted {
		return append(append(b, 0), g.Batch...)
	}
	b = append(b, 1)
	for _, h := range g.Hints {
		b = append(binary.AppendUvarint(b, uint64(len(h))), h...)
	}
	return append(b, g.Batch...)
}

// leastBatch is the minimum number of bytes of a batch in a group with hints: its
// hint's length, and its entry.
const leastBatch = 4

// DecodeGroup decodes a group's body; the result points into b.
func DecodeGroup(b []byte) (g GroupBody, err error) {
	if len(b) > MaxGroup {
		return g, fmt.Errorf("a group has %d bytes, at most %d are accepted", len(b), MaxGroup)
	}
	var ok bool
	if g.First, b, ok = cut(b); !ok {
		return g, errBody
	}
	if g.Count, b, ok = cut(b); !ok || len(b) == 0 || b[0] > 1 {
		return g, errBody
	}
	hints := b[0] == 1
	b = b[1:]
	if hints {
		if g.Count > uint64(len(b))/leastBatch {
			return g, errBody
		}
		g.Hints = make([][]byte, 0, g.Count)
		for range g.Count {
			var n uint64
			if n, b, ok = cut(b); !ok || n > uint64(len(b)) {
				return g, errBody
			}
			g.Hints = append(g.Hints, b[:n:n])
			b = b[n:]
		}
	}
	g.Batch = b
	return g, nil
}

// PartBody is piece Index (from 1) of a group's body that was split into Of pieces.
type PartBody struct {
	Index, Of uint64
	Piece     []byte
}

// Encode encodes a part's body.
func (p *PartBody) Encode() []byte {
	b := binary.AppendUvarint(make([]byte, 0, 8+len(p.Piece)), p.Index)
	b = binary.AppendUvarint(b, p.Of)
	return append(b, p.Piece...)
}

// DecodePart decodes a part's body; the piece points into b.
func DecodePart(b []byte) (p PartBody, err error) {
	var ok bool
	if p.Index, b, ok = cut(b); !ok {
		return p, errBody
	}
	if p.Of, b, ok = cut(b); !ok || p.Of < 2 || p.Of > MaxParts || p.Index < 1 || p.Index > p.Of || len(b) == 0 {
		return p, errBody
	}
	p.Piece = b
	return p, nil
}

// Parts gathers the parts of one group.
type Parts struct {
	of, have uint64
	body     []byte
}

// Reset discards the gathered parts.
func (p *Parts) Reset() { *p = Parts{} }

// Empty reports whether nothing was gathered.
func (p *Parts) Empty() bool { return p.have == 0 }

// Add adds a part. It returns the group's body when the last part is added. A first
// part discards earlier ones: their writer had to split the group again.
func (p *Parts) Add(part PartBody) ([]byte, error) {
	if part.Index == 1 {
		p.Reset()
	}
	switch {
	case part.Index != p.have+1, p.have > 0 && part.Of != p.of:
		return nil, fmt.Errorf("part %d of %d follows part %d of %d", part.Index, part.Of, p.have, p.of)
	case len(p.body)+len(part.Piece) > MaxGroup:
		return nil, fmt.Errorf("a group in parts has more than %d bytes", MaxGroup)
	}
	p.of, p.have = part.Of, part.Index
	p.body = append(p.body, part.Piece...)
	if p.have < p.of {
		return nil, nil
	}
	body := p.body
	p.Reset()
	return body, nil
}

func cut(b []byte) (uint64, []byte, bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 {
		return 0, nil, false
	}
	return n, b[size:], true
}
