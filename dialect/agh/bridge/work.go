package bridge

import (
	"strconv"
	"strings"

	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/channel"
)

// workPrefix begins the ids of work about a channel.
func workPrefix(channelID string) string { return work.AboutPrefix(lastPart(channelID)) }

// lastPart is the half of a channel's id that is its own.
func lastPart(channelID string) string { return channelID[strings.LastIndexByte(channelID, '.')+1:] }

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
