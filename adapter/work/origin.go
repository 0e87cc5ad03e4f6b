package work

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// extOrigin is the member of a message's ext that has its first origin.
const extOrigin = "parley.origin"

// firstOrigin returns where a record that came from another dialect was said first, if
// the record has it.
func firstOrigin(e *envelope.Envelope) (origin envelope.Origin, ok bool) {
	if e.Origin.Dialect != Dialect || e.Origin.Hops == 0 {
		return envelope.Origin{}, false
	}
	first := jsonscan.Member(jsonscan.Member(e.Ext, "ext"), extOrigin)
	origin.Dialect, _ = jsonscan.Text(jsonscan.Member(first, "dialect"))
	origin.ID, _ = jsonscan.Text(jsonscan.Member(first, "id"))
	return origin, origin.Dialect != "" && origin.ID != ""
}

// originClaim is the name that a message with a foreign origin takes in a conversation.
// It includes the sender, so that nobody can block what others bring, and the work,
// because one message may be sent in several channels between the same two peers.
func (p Place) originClaim(origin envelope.Origin, m *Message) string {
	return prefixOrigin + digest(p.Channel, p.ID, origin.Dialect, origin.ID, m.From, m.Work)
}

// OriginKey is the key of the entry that says that a peer brought a message of this
// origin into a conversation.
func (p Place) OriginKey(origin envelope.Origin, from string) string {
	return prefixOrigin + digest(p.Channel, p.ID, origin.Dialect, origin.ID) + between + inKey(from)
}

// digest hashes parts of any length.
func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part)))) //nolint:gosec // fields are bounded far below
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
