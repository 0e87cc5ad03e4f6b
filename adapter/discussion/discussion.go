// Package discussion governs channels in which several parties speak in
// rotation, the creator first. It is pure, and never closes a channel itself.
package discussion

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/adapter/internal/ag2"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// Type is the name under which the adapter is registered.
const Type = "discussion"

// RoundRobin is the only ordering.
const RoundRobin = "round_robin"

// Adapter is stateless; its zero value is ready to use.
type Adapter struct{ ag2.Common }

var manifest = channel.Manifest{
	Type:         Type,
	Version:      1,
	Participants: channel.Bounds{Min: 2},
	KnobsSchema:  []byte(`{"ordering":"str"}`),
	DefaultView:  "named_windowed_summary",
	Expectations: []channel.Expectation{
		ag2.Expectation("turn_within", "warn", `{"seconds":120}`),
		ag2.Expectation("turn_within", "hide", `{"seconds":600}`),
	},
}

// Manifest returns a constant.
func (Adapter) Manifest() channel.Manifest { return manifest }

// ValidateCreate requires at least two participants and a known ordering.
func (Adapter) ValidateCreate(m *channel.Metadata) error {
	if err := ag2.SeveralParties(m); err != nil {
		return err
	}
	ordering, err := ag2.Knob(m, "ordering")
	if err != nil || ordering == nil {
		return err
	}
	if name, err := jsontext.AppendUnquote(nil, ordering); err != nil || string(name) != RoundRobin {
		return ag2.Refuse("discussion does not know the ordering %s; supported: ['%s']", ordering, RoundRobin)
	}
	return nil
}

// Initial expects the creator, whatever its place in the order.
func (Adapter) Initial(m *channel.Metadata) (channel.State, error) {
	return &State{Order: m.IDs(), Next: m.Creator}, nil
}

// ValidateSend returns an error unless the sender is the expected speaker.
func (Adapter) ValidateSend(_ *channel.Metadata, s channel.State, e *envelope.Envelope) error {
	if state, ok := s.(*State); ok && e.Type == envelope.TypeText && e.Sender != state.Next {
		return ag2.RefuseTurn("discussion expects '%s' to speak, not '%s'", state.Next, e.Sender)
	}
	return nil
}

// Fold passes the turn to the participant after the speaker.
func (Adapter) Fold(s channel.State, e *envelope.Envelope) channel.State {
	state, ok := s.(*State)
	if !ok || e.Type != envelope.TypeText {
		return s
	}
	i := slices.Index(state.Order, e.Sender)
	if i < 0 {
		return s
	}
	return &State{
		Order:        state.Order,
		Next:         state.Order[(i+1)%len(state.Order)],
		LastSpeaker:  state.Order[i],
		LastEnvelope: e.ID,
		Turns:        state.Turns + 1,
	}
}

// OnAccepted returns no effects.
func (Adapter) OnAccepted(*channel.Metadata, channel.State, *envelope.Envelope) channel.Effects {
	return channel.Effects{}
}

// Expected returns the participant whose turn it is.
func (Adapter) Expected(_ *channel.Metadata, s channel.State) (channel.Turn, bool) {
	state, ok := s.(*State)
	if !ok {
		return channel.Turn{}, false
	}
	return channel.Turn{Agent: state.Next, Trigger: state.LastEnvelope}, true
}
