package work

import (
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// Options of the adapters of conversations; the zero value has every default.
type Options struct {
	// MaxWork is how much work one conversation takes (agh.limits.work).
	MaxWork int
}

// Common is embedded by the adapters of threads and direct rooms: the methods that
// both have.
type Common struct{}

// Opening is AtOnce: the first message opens the channel.
func (Common) Opening() channel.Opening { return channel.AtOnce }

// Dialect returns AGH, the only dialect that opens conversations.
func (Common) Dialect() string { return Dialect }

// HomeKeys makes the ids of messages unique in the whole workspace, without expiry.
func (Common) HomeKeys() bool { return true }

// WholeType is the type of the room that a conversation belongs to.
func (Common) WholeType() string { return RoomType }

// WholeName is the name of that room: the channel's.
func (Common) WholeName(m *channel.Metadata) string { return ChannelName(m) }

// Expected returns false: there are no turns.
func (Common) Expected(*channel.Metadata, channel.State) (channel.Turn, bool) {
	return channel.Turn{}, false
}

// Render returns the text of a message.
func (Common) Render(e *envelope.Envelope) (string, bool) { return Render(e) }

// ItemReader reads messages and steps of work. It has no state.
func (Common) ItemReader(*channel.Metadata) channel.ItemReader { return channel.ItemFunc(ReadItems) }

// MessageID returns the id that peers use for a message.
func (Common) MessageID(e *envelope.Envelope) string {
	if m, ok := ReadHead(e); ok {
		return m.ID
	}
	return ""
}

// Others returns the members without one of them.
func Others(in channel.Members, sender string) (others []string) {
	in.Each(func(agent string) bool {
		if agent != sender {
			others = append(others, agent)
		}
		return true
	})
	return others
}
