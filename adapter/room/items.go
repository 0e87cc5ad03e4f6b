package room

import (
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// ItemReader reads joins and leaves. It has no state. Messages go into threads, so a
// room is not a channel.Speaker.
func (Adapter) ItemReader(*channel.Metadata) channel.ItemReader { return channel.ItemFunc(readItems) }

func readItems(dst []channel.Item, e *envelope.Envelope) []channel.Item {
	event, ok := read(e)
	if !ok {
		return channel.ReadOther(dst, e)
	}
	item := channel.Item{Envelope: e, Speaker: e.Sender, Name: event.peer}
	switch e.Type {
	case TypeJoin:
		item.Kind = channel.ItemJoined
	case TypeLeave:
		item.Kind = channel.ItemLeft
	default:
		item.Text = event.purpose
	}
	return append(dst, item)
}

// MemberName returns the peer of an identity, if it has exactly one.
func (Adapter) MemberName(_ *channel.Metadata, s channel.State, agent string) (string, bool) {
	state, ok := s.(*State)
	if !ok || state == nil {
		return "", false
	}
	if n, _ := state.Agents.Get(agent); n != 1 {
		return "", false
	}
	for id, peer := range state.Peers.All() {
		if peer.Agent == agent {
			return id, true
		}
	}
	return "", false
}
