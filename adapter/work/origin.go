package work

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// extOrigin is the member of a message's ext that tells where it was said first.
const extOrigin = "parley.origin"

// firstOrigin is where what a record holds was said first, if it has crossed from
// another dialect and says so.
func firstOrigin(e *envelope.Envelope) (origin envelope.Origin, ok bool) {
	if e.Origin.Dialect != Dialect || e.Origin.Hops == 0 {
		return envelope.Origin{}, false
	}
	first := jsonscan.Member(jsonscan.Member(e.Ext, "ext"), extOrigin)
	origin.Dialect, _ = jsonscan.Text(jsonscan.Member(first, "dialect"))
	origin.ID, _ = jsonscan.Text(jsonscan.Member(first, "id"))
	return origin, origin.Dialect != "" && origin.ID != ""
}

// originClaim is the name that what was said first elsewhere takes in a conversation:
// for each sender, because nobody shall use up what others bring, and for each piece
// of work, because one message may be told in several channels between the same two.
func (p Place) originClaim(origin envelope.Origin, m *Message) string {
	return prefixOrigin + digest(p.Channel, p.ID, origin.Dialect, origin.ID, m.From, m.Work)
}

// OriginKey is the entry that says that a peer brought something into a conversation
// which was said first elsewhere.
func (p Place) OriginKey(origin envelope.Origin, from string) string {
	return prefixOrigin + digest(p.Channel, p.ID, origin.Dialect, origin.ID) + between + inKey(from)
}

// digest stands for parts of any length.
func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part)))) //nolint:gosec // fields are bounded far below
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
