package peer

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// RouteToken names a peer in subjects; for a verified handle it is the
// fingerprint.
func RouteToken(peer string) string {
	if _, fingerprint, ok := strings.Cut(peer, "@"); ok {
		return fingerprint
	}
	return short(peer)
}

// DirectID is the id of the room of two peers.
func DirectID(workspace, channel, one, other string) string {
	if other < one {
		one, other = other, one
	}
	return "direct_" + short(strings.Join([]string{"agh-network/direct-room/v0", workspace, channel, one, other}, "\x00"))
}

// short is the first half of a hash.
func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// NewID is a unique id.
func NewID(prefix string) string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	return prefix + hex.EncodeToString(random[:])
}

// Subject is the subject on which an envelope is published.
func Subject(e Envelope) string {
	base := "agh.network.v0." + e.Text("workspace_id") + "." + e.Text("channel") + "."
	if to := e.Text("to"); to != "" {
		return base + "peer." + RouteToken(to)
	}
	return base + "broadcast"
}
