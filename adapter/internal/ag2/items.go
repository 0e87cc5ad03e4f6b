package ag2

import (
	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/message"
)

// ItemReader returns a reader of texts. It keeps no state.
func (Common) ItemReader(*channel.Metadata) channel.ItemReader { return channel.ItemFunc(ReadItems) }

// ReadItems reads texts, and leaves the rest to the hub's own reader.
func ReadItems(dst []channel.Item, e *envelope.Envelope) []channel.Item {
	if e.Type == envelope.TypeText {
		if text, ok := channel.PlainText(e.Data); ok {
			return append(dst, channel.TextItem(e, text))
		}
		if text, ok := (Common{}).Render(e); ok {
			return append(dst, channel.TextItem(e, text))
		}
	}
	return channel.ReadOther(dst, e)
}

// Say returns the draft of a message as one text.
func (Common) Say(m *channel.Metadata, _ channel.State, sender string, msg message.Envelope) ([]channel.Draft, error) {
	text, err := channel.SaidText(msg)
	if err != nil {
		return nil, err
	}
	e, err := turn.BuildText(m.ID, sender, text, turn.Address{})
	if err != nil {
		return nil, err
	}
	return []channel.Draft{{Envelope: *e}}, nil
}
