// Package frame defines the format of the messages in a shard's log: a header with
// the term and the chain, a body, and a checksum. Decoders check every length before
// they allocate. It depends on no stream and no store.
package frame

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Kind is the kind of a message.
type Kind byte

// Kinds of messages.
const (
	Fence   Kind = 1 + iota // begins a term
	Group                   // what one commit wrote
	Part                    // a piece of a group that is too large for one message
	Barrier                 // empty: proves that its sender led when it was stored
)

// String returns the name of the kind.
func (k Kind) String() string {
	switch k {
	case Fence:
		return "fence"
	case Group:
		return "group"
	case Part:
		return "part"
	case Barrier:
		return "barrier"
	}
	return fmt.Sprintf("kind(%d)", byte(k))
}

// Version is the version of the format, in every message.
const Version = 1

// Chain is a hash of a message and all messages before it.
type Chain [16]byte

const (
	headerLen = 2 + 1 + 1 + 8 + 16
	sumLen    = 4
	// Overhead is the number of bytes of a message besides its body.
	Overhead = headerLen + sumLen
)

var (
	magic      = []byte("PJ")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// ErrForeign is returned for bytes that are not a message of this format.
var ErrForeign = errors.New("not a message of a journal")

// VersionError is the error for a message of a newer version.
type VersionError struct{ Version byte }

func (e *VersionError) Error() string {
	return fmt.Sprintf("a message has form %d, this version knows forms up to %d; use a newer one", e.Version, Version)
}

// Message is a message without its checksum.
type Message struct {
	Kind  Kind
	Term  uint64 // sequence of the fence before it; of a fence, its own
	Chain Chain
	Body  []byte
}

// Next returns the chain of a message that follows the message with chain c.
func (c Chain) Next(kind Kind, term uint64, body []byte) (next Chain) {
	h := sha256.New()
	_, _ = h.Write(c[:])
	var head [9]byte
	head[0] = byte(kind)
	binary.BigEndian.PutUint64(head[1:], term)
	_, _ = h.Write(head[:])
	_, _ = h.Write(body)
	copy(next[:], h.Sum(nil))
	return next
}

// Encode returns the message that follows the one with chain before, and its chain.
func Encode(before Chain, kind Kind, term uint64, body []byte) ([]byte, Chain) {
	chain := before.Next(kind, term, body)
	b := make([]byte, 0, Overhead+len(body))
	b = append(b, magic...)
	b = append(b, Version, byte(kind))
	b = binary.BigEndian.AppendUint64(b, term)
	b = append(b, chain[:]...)
	b = append(b, body...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), chain
}

// Decode decodes a message; its body points into b. It does not check the chain.
func Decode(b []byte) (Message, error) {
	if len(b) < Overhead || !bytes.HasPrefix(b, magic) {
		return Message{}, ErrForeign
	}
	end := len(b) - sumLen
	if binary.BigEndian.Uint32(b[end:]) != crc32.Checksum(b[:end], castagnoli) {
		return Message{}, fmt.Errorf("%w: its checksum does not fit", ErrForeign)
	}
	if b[2] == 0 || b[2] > Version {
		return Message{}, &VersionError{b[2]}
	}
	m := Message{Kind: Kind(b[3]), Term: binary.BigEndian.Uint64(b[4:]), Body: b[headerLen:end:end]}
	copy(m.Chain[:], b[12:])
	if m.Kind < Fence || m.Kind > Barrier {
		return Message{}, fmt.Errorf("%w: its kind is %d", ErrForeign, b[3])
	}
	return m, nil
}

// KindOf returns the kind of a message without decoding it, or 0 if b is not one.
func KindOf(b []byte) Kind {
	if len(b) < Overhead || !bytes.HasPrefix(b, magic) {
		return 0
	}
	return Kind(b[3])
}
