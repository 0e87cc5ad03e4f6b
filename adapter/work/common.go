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

// Opening is at once, with the first message.
func (Common) Opening() channel.Opening { return channel.AtOnce }

// Dialect alone opens conversations.
func (Common) Dialect() string { return Dialect }

// HomeKeys makes the ids of messages count in the whole workspace, for ever.
func (Common) HomeKeys() bool { return true }

// WholeType is a channel's room, without which there is no conversation.
func (Common) WholeType() string { return RoomType }

// WholeName is the channel.
func (Common) WholeName(m *channel.Metadata) string { return ChannelName(m) }

// Expected names nobody: there are no turns.
func (Common) Expected(*channel.Metadata, channel.State) (channel.Turn, bool) {
	return channel.Turn{}, false
}

// Render shows what a message says.
func (Common) Render(e *envelope.Envelope) (string, bool) { return Render(e) }

// ItemReader reads what is said, and steps of work. It remembers nothing.
func (Common) ItemReader(*channel.Metadata) channel.ItemReader { return channel.ItemFunc(ReadItems) }

// MessageID is the id that peers know a message by.
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
