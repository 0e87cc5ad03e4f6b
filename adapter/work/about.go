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

// About reads which channel of another dialect a piece of work is about, and which of
// its envelopes; false: none.
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

// AboutPrefix begins the ids of work about a channel, by the half of its id that is its
// own.
func AboutPrefix(own string) string { return aboutPrefix + own + "-" }
