// Package ag2 holds what AG2's four adapters have in common, so that each of them
// has only its own rules. It is pure, as they are.
package ag2

import (
	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// Common is embedded by each of the four adapters. They open by invitation, and the
// audience determines both who receives an envelope and who may read it. By default
// agents receive and send texts.
type Common struct{ turn.Defaults }

// Opening returns ByInvitation: every invitee acks before the channel is active.
func (Common) Opening() channel.Opening { return channel.ByInvitation }

// Recipients returns the audience exactly as listed, or everyone but the sender in
// participant order.
func (Common) Recipients(m *channel.Metadata, _ channel.State, _ channel.Members, e *envelope.Envelope) []string {
	if e.Audience != nil {
		return append([]string{}, e.Audience...)
	}
	return m.Others(e.Sender)
}

// Visible follows the audience; a sender always sees its own envelopes.
func (Common) Visible(_ *channel.Metadata, _ channel.State, _ channel.Members, e *envelope.Envelope, agent string) bool {
	return e.VisibleTo(agent)
}

// Refuse returns the only kind of error that an adapter returns.
func Refuse(format string, args ...any) error {
	return fault.New(fault.Protocol, format, args...)
}

// RefuseTurn returns the error for a send that is out of turn.
func RefuseTurn(format string, args ...any) error {
	return fault.New(fault.Protocol, format, args...).Because(fault.OutOfTurn)
}

// Expectation writes an expectation of a built-in manifest.
func Expectation(name, onViolation, params string) channel.Expectation {
	return channel.Expectation{Name: name, OnViolation: onViolation, Params: []byte(params)}
}

// TwoParties checks that a channel has an initiator, a respondent and nobody else,
// in this order, because the first failing check determines the error.
func TwoParties(m *channel.Metadata) error {
	name, n := m.Manifest.Type, len(m.Participants)
	if _, ok := WithRole(m, channel.Initiator); !ok {
		return Refuse("%s needs exactly one initiator; %d participants were given, and none has that role", name, n)
	}
	if _, ok := WithRole(m, channel.Respondent); !ok {
		return Refuse("%s needs exactly one respondent besides the initiator; %d participants were given", name, n)
	}
	if n != 2 {
		return Refuse("%s takes exactly 2 participants, not %d", name, n)
	}
	return nil
}

// SeveralParties checks that a channel has at least two participants.
func SeveralParties(m *channel.Metadata) error {
	if n := len(m.Participants); n < 2 {
		return Refuse("%s takes at least 2 participants, not %d", m.Manifest.Type, n)
	}
	return nil
}

// WithRole returns the first participant that has a role.
func WithRole(m *channel.Metadata, role channel.Role) (string, bool) {
	for _, p := range m.Participants {
		if p.Role == role {
			return p.Agent, true
		}
	}
	return "", false
}

// Pair returns the bounds of a two-party manifest.
func Pair() channel.Bounds {
	two := 2
	return channel.Bounds{Min: 2, Max: &two, Roles: []channel.Role{channel.Initiator, channel.Respondent}}
}
