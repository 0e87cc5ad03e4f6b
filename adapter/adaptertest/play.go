// Package adaptertest runs channels through an adapter without a hub, and
// checks the laws that every adapter keeps. It is for tests only.
package adaptertest

import (
	"fmt"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// Epoch is when every channel made here begins.
var Epoch = time.Date(2026, 3, 9, 10, 15, 42, 8113000, time.UTC)

// Metadata makes a channel of the adapter as a hub would: the first participant
// is the creator, and roles follow from the number of them.
func Metadata(a channel.Adapter, knobs string, participants ...string) *channel.Metadata {
	manifest := a.Manifest()
	m := &channel.Metadata{
		ID: "channel-1", Manifest: &manifest, State: channel.Active,
		CreatedAt: Epoch, ExpiresAt: Epoch.Add(2 * time.Hour),
	}
	if knobs != "" {
		m.Knobs = []byte(knobs)
	}
	for i, agent := range participants {
		role := channel.Member
		switch {
		case i == 0:
			role = channel.Initiator
			m.Creator = agent
		case len(participants) == 2:
			role = channel.Respondent
		}
		m.Participants = append(m.Participants, channel.Participant{Agent: agent, Role: role, Order: i, JoinedAt: Epoch})
	}
	return m
}

// Play is a channel driven by hand: it admits envelopes as the hub does, in
// memory and one at a time.
type Play struct {
	Adapter channel.Adapter
	Meta    *channel.Metadata
	State   channel.State
	Log     []*envelope.Envelope
	Closed  string // the reason, once the adapter has ended the channel
}

// Open validates and begins a channel.
func Open(a channel.Adapter, m *channel.Metadata) (*Play, error) {
	if err := a.ValidateCreate(m); err != nil {
		return nil, err
	}
	s, err := a.Initial(m)
	if err != nil {
		return nil, err
	}
	return &Play{Adapter: a, Meta: m, State: s}, nil
}

// Envelope makes one that is ready to be posted.
func Envelope(sender, eventType, data string) *envelope.Envelope {
	return &envelope.Envelope{Channel: "channel-1", Sender: sender, Type: eventType, Priority: envelope.Normal, Data: []byte(data)}
}

// Text makes a text.
func Text(sender, text string) *envelope.Envelope {
	return Envelope(sender, envelope.TypeText, fmt.Sprintf(`{"text":%q}`, text))
}

// Post admits an envelope: judge, stamp, fold, act. It stamps a copy, and
// refuses everything once the channel has closed.
func (p *Play) Post(e *envelope.Envelope) error {
	if p.Closed != "" {
		return fmt.Errorf("channel is closed: %s", p.Closed)
	}
	if err := p.Adapter.ValidateSend(p.Meta, p.State, e); err != nil {
		return err
	}
	e = e.Clone()
	e.Seq = uint64(len(p.Log) + 1)
	e.ID = fmt.Sprintf("%032x", e.Seq)
	e.CreatedAt = Epoch.Add(time.Duration(e.Seq) * time.Second)
	p.Log = append(p.Log, e)
	p.State = p.Adapter.Fold(p.State, e)
	if effects := p.Adapter.OnAccepted(p.Meta, p.State, e); effects.Next != channel.Unset {
		p.Closed = effects.Reason
	}
	return nil
}

// Say posts texts, each by its sender, and stops at the first refusal.
func (p *Play) Say(senders ...string) error {
	for _, sender := range senders {
		if err := p.Post(Text(sender, "from "+sender)); err != nil {
			return err
		}
	}
	return nil
}

// JSON is the state as people read it.
func (p *Play) JSON() string { return StateJSON(p.Adapter, p.State) }

// StateJSON is a state as people read it.
func StateJSON(a channel.Adapter, s channel.State) string {
	text, err := a.Codec().Encode(s)
	if err != nil {
		return "unreadable: " + err.Error()
	}
	return string(text)
}

// Replay folds a log from the beginning.
func Replay(a channel.Adapter, m *channel.Metadata, log []*envelope.Envelope) (channel.State, error) {
	s, err := a.Initial(m)
	if err != nil {
		return nil, err
	}
	for _, e := range log {
		s = a.Fold(s, e)
	}
	return s, nil
}
