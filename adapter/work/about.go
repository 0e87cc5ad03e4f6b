package work

import (
	"strconv"
	"strings"

	"github.com/parley-hub/parley/channel"
)

// aboutPrefix begins the ids of work about a channel of another dialect:
// work_CHANNEL-N, where N is the place of an envelope in the channel's log, and may be
// followed by an underscore and more.
const aboutPrefix = "work_"

// About returns the channel of another dialect that a piece of work is about, and the
// sequence of its envelope; false: it is about none.
func About(workID string) (channelID string, seq uint64, ok bool) {
	rest, ok := strings.CutPrefix(workID, aboutPrefix)
	if !ok {
		return "", 0, false
	}
	channelID, n, ok := strings.Cut(rest, "-")
	if !ok || !channel.ValidID(channelID) || strings.Contains(channelID, ".") {
		return "", 0, false
	}
	n, _, _ = strings.Cut(n, "_")
	seq, err := strconv.ParseUint(n, 10, 63)
	return channelID, seq, err == nil && seq > 0
}

// AboutPrefix returns the prefix of the ids of work about a channel, given the last
// part of its id.
func AboutPrefix(own string) string { return aboutPrefix + own + "-" }
