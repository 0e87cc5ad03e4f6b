// Package consulting governs channels of one question and one reply: the initiator
// asks, the respondent answers, the channel closes. It is pure: it neither delivers
// nor stores.
package consulting

import (
	"github.com/parley-hub/parley/adapter/internal/ag2"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// Type is the name under which the adapter is registered.
const Type = "consulting"

// Complete is the reason with which a channel closes after the reply.
const Complete = "consulting_complete"

// Adapter is stateless; its zero value is ready to use.
type Adapter struct{ ag2.Common }

var manifest = channel.Manifest{
	Type:         Type,
	Version:      1,
	Participants: ag2.Pair(),
	DefaultView:  "full_transcript",
	Expectations: []channel.Expectation{
		ag2.Expectation("acks_within", "auto_close", `{"seconds":30}`),
		ag2.Expectation("reply_within", "auto_close", `{"seconds":600}`),
	},
}

// Manifest returns a constant.
func (Adapter) Manifest() channel.Manifest { return manifest }

// ValidateCreate requires one initiator and one respondent.
func (Adapter) ValidateCreate(m *channel.Metadata) error { return ag2.TwoParties(m) }

// Initial returns the state before the question.
func (Adapter) Initial(*channel.Metadata) (channel.State, error) { return &State{}, nil }

// ValidateSend lets the initiator ask once and then the respondent answer once.
func (Adapter) ValidateSend(m *channel.Metadata, s channel.State, e *envelope.Envelope) error {
	state, ok := s.(*State)
	if !ok || e.Type != envelope.TypeText {
		return nil
	}
	switch {
	case state.Replied:
		return ag2.Refuse("consulting is already complete: the question has been answered")
	case !state.Asked:
		if e.Sender != m.Creator {
			return ag2.RefuseTurn("consulting expects first send from initiator '%s', not from '%s'", m.Creator, e.Sender)
		}
	default:
		respondent, _ := ag2.WithRole(m, channel.Respondent)
		if e.Sender != respondent {
			return ag2.RefuseTurn("consulting expects reply from respondent '%s', not from '%s'", respondent, e.Sender)
		}
	}
	return nil
}

// Fold counts texts up to two. It does not check who sent them, because
// ValidateSend did.
func (Adapter) Fold(s channel.State, e *envelope.Envelope) channel.State {
	state, ok := s.(*State)
	if !ok || e.Type != envelope.TypeText || state.Replied {
		return s
	}
	return &State{Asked: true, Replied: state.Asked, LastEnvelope: e.ID}
}

// OnAccepted closes the channel after the reply.
func (Adapter) OnAccepted(_ *channel.Metadata, s channel.State, e *envelope.Envelope) channel.Effects {
	if state, ok := s.(*State); ok && e.Type == envelope.TypeText && state.Replied {
		return channel.Effects{Next: channel.Closed, Reason: Complete}
	}
	return channel.Effects{}
}

// Expected returns the initiator, then the respondent, then nobody.
func (Adapter) Expected(m *channel.Metadata, s channel.State) (channel.Turn, bool) {
	state, ok := s.(*State)
	switch {
	case !ok || state.Replied:
		return channel.Turn{}, false
	case !state.Asked:
		return channel.Turn{Agent: m.Creator, Trigger: state.LastEnvelope}, true
	}
	respondent, found := ag2.WithRole(m, channel.Respondent)
	return channel.Turn{Agent: respondent, Trigger: state.LastEnvelope}, found
}
