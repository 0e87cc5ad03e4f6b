package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// callKey names a tool call by its position: the channel, the turn that is
// being taken, the tool, and which call of that tool in the round it is. It is
// the same when the round is tried again.
func callKey(channelID string, turns int, tool string, ordinal int) string {
	// Lengths keep a name that contains the separator from producing another
	// call's key.
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s|%d|%d:%s|%d", len(channelID), channelID, turns, len(tool), tool, ordinal))
	return hex.EncodeToString(sum[:])
}
