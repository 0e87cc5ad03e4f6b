// Package conversation governs channels in which two parties talk in any order
// until one of them ends it. It is pure, and never closes a channel itself.
package conversation

import (
	"github.com/parley-hub/parley/adapter/internal/ag2"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// Type is the name under which the adapter is registered.
const Type = "conversation"

// Adapter is stateless; its zero value is ready to use.
type Adapter struct{ ag2.Common }

var manifest = channel.Manifest{
	Type:         Type,
	Version:      1,
	Participants: ag2.Pair(),
	DefaultView:  "windowed_summary",
	Expectations: []channel.Expectation{
		ag2.Expectation("max_silence", "audit", `{"seconds":3600}`),
	},
}

// Manifest returns a constant.
func (Adapter) Manifest() channel.Manifest { return manifest }

// ValidateCreate requires one initiator and one respondent.
func (Adapter) ValidateCreate(m *channel.Metadata) error { return ag2.TwoParties(m) }

// Initial returns the state before the first text.
func (Adapter) Initial(*channel.Metadata) (channel.State, error) { return &State{}, nil }

// ValidateSend lets both parties speak at any time.
func (Adapter) ValidateSend(m *channel.Metadata, _ channel.State, e *envelope.Envelope) error {
	if e.Type == envelope.TypeText && !m.Has(e.Sender) {
		return ag2.Refuse("conversation only accepts sends from participants; '%s' is none", e.Sender)
	}
	return nil
}

// Fold counts texts.
func (Adapter) Fold(s channel.State, e *envelope.Envelope) channel.State {
	state, ok := s.(*State)
	if !ok || e.Type != envelope.TypeText {
		return s
	}
	return &State{Turns: state.Turns + 1, LastSpeaker: e.Sender, LastEnvelope: e.ID}
}

// OnAccepted returns no effects.
func (Adapter) OnAccepted(*channel.Metadata, channel.State, *envelope.Envelope) channel.Effects {
	return channel.Effects{}
}

// Expected returns no speaker: there are no turns.
func (Adapter) Expected(*channel.Metadata, channel.State) (channel.Turn, bool) {
	return channel.Turn{}, false
}
