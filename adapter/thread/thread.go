// Package thread governs AGH's threads: public conversations in a channel of a
// workspace, opened by their first message, with the members of that channel's
// room. It is pure, and never closes one.
package thread

import (
	"cmp"

	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/message"
)

// Type is the name under which the adapter is registered.
const Type = "thread"

// Options of the adapter; the zero value has every default.
type Options = work.Options

// Adapter is stateless code.
type Adapter struct {
	work.Common
	maxWork int
}

// New makes the adapter.
func New(o Options) Adapter {
	return Adapter{maxWork: cmp.Or(o.MaxWork, work.DefaultMaxWork)}
}

var manifest = channel.Manifest{
	Type:        Type,
	Version:     1,
	KnobsSchema: []byte(`{"workspace_id":"str","channel":"str","thread_id":"str"}`),
	DefaultView: "full_transcript",
}

// Manifest is constant.
func (Adapter) Manifest() channel.Manifest { return manifest }

// ValidateCreate requires the knobs that say where the thread is.
func (Adapter) ValidateCreate(m *channel.Metadata) error {
	_, err := knobs(m)
	return err
}

func knobs(m *channel.Metadata) (work.Knobs, error) {
	k, err := work.ReadKnobs(m)
	if err == nil && k.Thread == "" {
		err = fault.New(fault.Invalid, "a thread has the knob thread_id")
	}
	return k, err
}

// Initial is the state before the first message.
func (Adapter) Initial(m *channel.Metadata) (channel.State, error) {
	k, err := knobs(m)
	if err != nil {
		return nil, err
	}
	return &work.Conversation{Place: work.Place{Workspace: k.Workspace, Channel: k.Channel, ID: k.Thread}}, nil
}

// ValidateSend lets everyone speak, and enforces the rules of work.
func (a Adapter) ValidateSend(_ *channel.Metadata, s channel.State, e *envelope.Envelope) error {
	return work.Validate(Type, s, e, a.maxWork)
}

// Admits accepts remote peers, which are not members of a room. Only the dialect
// posts into threads, and it knows them.
func (Adapter) Admits(*channel.Metadata, channel.State, channel.Members, string) bool { return true }

// Fold counts messages and applies steps of work.
func (Adapter) Fold(s channel.State, e *envelope.Envelope) channel.State { return work.Fold(s, e) }

// OnAccepted claims new work and updates the lists.
func (Adapter) OnAccepted(_ *channel.Metadata, s channel.State, e *envelope.Envelope) channel.Effects {
	return work.OnAccepted(s, e, nil)
}

// Recipients returns the addressee of a directed message, all other members for a say or
// capability to all, and nobody for a receipt or trace to all.
func (Adapter) Recipients(_ *channel.Metadata, s channel.State, in channel.Members, e *envelope.Envelope) []string {
	c, _ := s.(*work.Conversation) // if it is nil, the record is decoded
	m, ok := work.Head(c, e)
	switch {
	case !ok:
		return nil
	case m.To != "":
		if e.To == "" || e.To == e.Sender || !in.Has(e.To) {
			return nil // not hosted here
		}
		return []string{e.To}
	case !m.Opens():
		return nil
	}
	return work.Others(in, e.Sender)
}

// Visible shows everything to every member: `to` directs a message without hiding it.
func (Adapter) Visible(_ *channel.Metadata, _ channel.State, in channel.Members, e *envelope.Envelope, agent string) bool {
	return in.Has(agent) || agent == e.Sender
}

// Codec writes the state.
func (Adapter) Codec() channel.Codec { return work.Codec() }

// Say returns the record of a message to everyone in the thread.
func (Adapter) Say(_ *channel.Metadata, s channel.State, sender string, msg message.Envelope) ([]channel.Draft, error) {
	c, ok := s.(*work.Conversation)
	if !ok || c == nil {
		return nil, fault.New(fault.Internal, "%T is not the state of a %s", s, Type)
	}
	return work.Say(c, Type, sender, msg)
}
