package bridge

import (
	"strconv"
	"strings"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/hub"
)

// workPrefix begins the ids of work about a channel.
func workPrefix(channelID string) string { return "work_" + own(channelID) + "-" }

// own is the half of a channel's id that is its own.
func own(channelID string) string { return channelID[strings.LastIndexByte(channelID, '.')+1:] }

// turnOf makes the part of a work id that names an envelope: its sequence in the log
// and, for the second and further peers of a workspace, the number of the peer. Work
// ids are unique in the whole workspace.
func (m *member) turnOf(meta *channel.Metadata, seq uint64) string {
	n := strconv.FormatUint(seq, 10)
	before := 0
	for _, p := range meta.Participants {
		if p.Agent == m.id {
			break
		}
		if other, ok := ParseName(m.b.cfg.Hub.Name(p.Agent)); ok && other.Workspace == m.Workspace {
			before++
		}
	}
	if before > 0 {
		n += "_" + strconv.Itoa(before)
	}
	return n
}

// parseWork reads which channel work is about, and which of its envelopes.
func parseWork(id string) (channelID string, seq uint64, ok bool) {
	rest, ok := strings.CutPrefix(id, "work_")
	if !ok {
		return "", 0, false
	}
	channelID, n, ok := strings.Cut(rest, "-")
	if !ok || !channel.ValidID(channelID) || hub.HomeOf(channelID) != "" {
		return "", 0, false
	}
	n, _, _ = strings.Cut(n, "_")
	seq, err := strconv.ParseUint(n, 10, 63)
	return channelID, seq, err == nil && seq > 0
}
