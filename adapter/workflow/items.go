package workflow

import (
	"github.com/parley-hub/parley/adapter/internal/ag2"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/graph"
)

// ItemReader returns a reader of texts and packets. It keeps no state.
func (Adapter) ItemReader(*channel.Metadata) channel.ItemReader { return channel.ItemFunc(readItems) }

// readItems reads a packet as its text, as the change of turn that it makes, and,
// if it sets context variables, as an item of another kind.
func readItems(dst []channel.Item, e *envelope.Envelope) []channel.Item {
	if e.Type != envelope.TypePacket {
		return ag2.ReadItems(dst, e)
	}
	begin := len(dst)
	if body := bodyOf(e.Data); body != "" {
		dst = append(dst, channel.TextItem(e, body))
	}
	packet := graph.ReadPacket(e.Data)
	switch packet.Kind {
	case graph.RoutingHandoff:
		dst = append(dst, channel.Item{Kind: channel.ItemTurn, Envelope: e, Speaker: e.Sender, State: channel.TurnPassed, To: packet.Target, Text: packet.Reason})
	case graph.RoutingFinish:
		dst = append(dst, channel.Item{Kind: channel.ItemTurn, Envelope: e, Speaker: e.Sender, State: channel.TurnFinished, Text: packet.Reason})
	}
	if update := packet.Updates; len(update.Set)+len(update.Delete) > 0 || len(dst) == begin {
		dst = append(dst, channel.Item{Envelope: e, Speaker: e.Sender})
	}
	return dst
}
