package turn

import (
	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// Packet is what a packet built by hand may carry besides its body.
type Packet struct {
	Handoff *Handoff // its target is an agent id: nothing resolves it
	// Context is set when the packet is folded. It is written twice: under
	// context, where AG2's own helper puts it, and under context_updates, which
	// is what folds read.
	Context map[string]any
	Address
}

// BuildText makes a text envelope, as every adapter folds it.
func BuildText(channelID, sender, text string, to Address) (*envelope.Envelope, error) {
	b := &jsonbuf.Buffer{}
	b.Open('{').Key("text").String(text).Close('}')
	return build(channelID, sender, envelope.TypeText, b, to)
}

// BuildPacket makes a packet envelope, as the workflow adapter folds it.
func BuildPacket(channelID, sender, body string, p Packet) (*envelope.Envelope, error) {
	b := &jsonbuf.Buffer{}
	b.Open('{').Key("body").String(body)
	if h := p.Handoff; h != nil {
		b.Key("routing").Open('{').Key("kind").String(KindHandoff).Key("target").String(h.Target)
		if h.Reason != "" {
			b.Key("reason").String(h.Reason)
		}
		b.Close('}')
	}
	if p.Context != nil {
		set, err := json.Marshal(p.Context, json.Deterministic(true))
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "context is not JSON: %v", err)
		}
		b.Key("context").Object(set)
		b.Key("context_updates").Open('{').Key("set").Object(set).Key("delete").Strings(nil).Close('}')
	}
	b.Close('}')
	return build(channelID, sender, envelope.TypePacket, b, p.Address)
}

func build(channelID, sender, eventType string, b *jsonbuf.Buffer, to Address) (*envelope.Envelope, error) {
	data, err := b.Result()
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "text is not valid UTF-8")
	}
	return &envelope.Envelope{
		Channel:   channelID,
		Sender:    sender,
		Type:      eventType,
		Audience:  to.Audience,
		Causation: to.Causation,
		Priority:  envelope.Normal,
		Data:      data,
	}, nil
}
