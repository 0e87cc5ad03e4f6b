// Package turn is what an agent's runtime asks of the adapter that governs its
// channel: how to read it, what one model round becomes, which tools go with
// it. All of it is pure; the loop that asks lives in package agent.
package turn

import (
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/view"
)

// Driver is the agent's side of an adapter.
type Driver interface {
	channel.Renderer
	// View is how a participant reads the channel.
	View(m *channel.Metadata, participant string) view.View
	// Input is what a model is asked when the view does not show the
	// triggering envelope; "" takes no turn.
	Input(e *envelope.Envelope) string
	// Reply is the one envelope that a finished model round becomes, or nil
	// for a silent round.
	Reply(m *channel.Metadata, s channel.State, sender string, r Round, ids Directory) (*envelope.Envelope, error)
	// Turns is how many turns have been taken, where the adapter counts them.
	Turns(s channel.State) (n int, counted bool)
	// Tools names the channel's own tools that a participant has now.
	Tools(m *channel.Metadata, s channel.State, participant string) []string
	// BuildText and BuildPacket make envelopes of the shape that the adapter
	// folds, for bridges and tests that run no agent.
	BuildText(channelID, sender, text string, to Address) (*envelope.Envelope, error)
	BuildPacket(channelID, sender, body string, p Packet) (*envelope.Envelope, error)
}

// Say is the one tool that a channel itself may offer.
const Say = "say"

// Directory finds an agent's id by its name.
type Directory func(name string) (id string, ok bool)

// Address says whom an envelope is for and what it answers.
type Address struct {
	Audience  []string // nil: everyone
	Causation string
}

// Defaults is the agent's side of an adapter that has none of its own: texts
// in, texts out, no tools. Embed it to override parts.
type Defaults struct{ view.TextOnly }

var _ Driver = Defaults{}

// For returns the agent's side of an adapter.
func For(a channel.Adapter) Driver {
	if d, ok := a.(Driver); ok {
		return d
	}
	return Defaults{}
}

// View shows everything.
func (Defaults) View(*channel.Metadata, string) view.View { return view.Full() }

// Input is the text of a text.
func (d Defaults) Input(e *envelope.Envelope) string {
	text, _ := d.Render(e)
	return text
}

// Reply is a text to everyone, or nothing where the model said nothing.
func (d Defaults) Reply(m *channel.Metadata, _ channel.State, sender string, r Round, _ Directory) (*envelope.Envelope, error) {
	if r.Body == "" {
		return nil, nil
	}
	return d.BuildText(m.ID, sender, r.Body, Address{})
}

// Turns are not counted.
func (Defaults) Turns(channel.State) (int, bool) { return 0, false }

// Tools returns no tools.
func (Defaults) Tools(*channel.Metadata, channel.State, string) []string { return nil }

// BuildText makes a text.
func (Defaults) BuildText(channelID, sender, text string, to Address) (*envelope.Envelope, error) {
	return BuildText(channelID, sender, text, to)
}

// BuildPacket makes a packet.
func (Defaults) BuildPacket(channelID, sender, body string, p Packet) (*envelope.Envelope, error) {
	return BuildPacket(channelID, sender, body, p)
}
