// Package thread governs AGH's threads: public conversations in a channel of a
// workspace, opened by their first message, with the members of that channel's
// room. It is pure, and never closes one.
package thread

import (
	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/message"
)

// Type is the name under which the adapter is registered.
const Type = "thread"

// Options of the adapter; the zero value has every default.
type Options struct {
	// MaxWork is how much work one thread takes (agh.limits.work).
	MaxWork int
}

// Adapter is stateless code.
type Adapter struct{ maxWork int }

// New makes the adapter.
func New(o Options) Adapter {
	if o.MaxWork <= 0 {
		o.MaxWork = work.DefaultMaxWork
	}
	return Adapter{o.MaxWork}
}

var manifest = channel.Manifest{
	Type:        Type,
	Version:     1,
	KnobsSchema: []byte(`{"workspace_id":"str","channel":"str","thread_id":"str"}`),
	DefaultView: "full_transcript",
}

// Manifest is constant.
func (Adapter) Manifest() channel.Manifest { return manifest }

// Opening is at once, with the first message.
func (Adapter) Opening() channel.Opening { return channel.AtOnce }

// Dialect alone opens threads.
func (Adapter) Dialect() string { return work.Dialect }

// HomeKeys makes the ids of messages count in the whole workspace, for ever.
func (Adapter) HomeKeys() bool { return true }

// WholeType is a channel's room, without which there is no conversation.
func (Adapter) WholeType() string { return work.RoomType }

// WholeName is the channel.
func (Adapter) WholeName(m *channel.Metadata) string { return work.ChannelName(m) }

// ValidateCreate wants to know where the thread is.
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

// Initial is before the first message.
func (Adapter) Initial(m *channel.Metadata) (channel.State, error) {
	k, err := knobs(m)
	if err != nil {
		return nil, err
	}
	return &work.Conversation{Place: work.Place{Workspace: k.Workspace, Channel: k.Channel, ID: k.Thread}}, nil
}

// ValidateSend lets everyone speak, and holds the rules of work.
func (a Adapter) ValidateSend(_ *channel.Metadata, s channel.State, e *envelope.Envelope) error {
	_, err := work.Validate(Type, s, e, a.maxWork)
	return err
}

// Admits lets remote peers speak, who are members of no room. Only the dialect
// posts into threads, and it knows who they are.
func (Adapter) Admits(*channel.Metadata, channel.State, channel.Members, string) bool { return true }

// Fold counts messages and follows work.
func (Adapter) Fold(s channel.State, e *envelope.Envelope) channel.State { return work.Fold(s, e) }

// OnAccepted claims new work and keeps the lists.
func (Adapter) OnAccepted(_ *channel.Metadata, s channel.State, e *envelope.Envelope) channel.Effects {
	return work.OnAccepted(s, e, nil)
}

// Expected is nobody: there are no turns.
func (Adapter) Expected(*channel.Metadata, channel.State) (channel.Turn, bool) {
	return channel.Turn{}, false
}

// Recipients are the addressee of a directed message, everyone else of what is
// said to all, and nobody of a receipt or trace to all.
func (Adapter) Recipients(_ *channel.Metadata, _ channel.State, in channel.Members, e *envelope.Envelope) []string {
	m, ok := work.Read(e)
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
	var others []string
	in.Each(func(agent string) bool {
		if agent != e.Sender {
			others = append(others, agent)
		}
		return true
	})
	return others
}

// Visible is everything to every member: `to` directs without hiding.
func (Adapter) Visible(_ *channel.Metadata, _ channel.State, in channel.Members, e *envelope.Envelope, agent string) bool {
	return in.Has(agent) || agent == e.Sender
}

// Codec writes the state.
func (Adapter) Codec() channel.Codec { return work.Codec() }

// Render shows what a message says.
func (Adapter) Render(e *envelope.Envelope) (string, bool) { return work.Render(e) }

// ItemReader reads what is said, and steps of work. It remembers nothing.
func (Adapter) ItemReader(*channel.Metadata) channel.ItemReader {
	return channel.ItemFunc(work.ReadItems)
}

// Say says a message to everyone in the thread.
func (Adapter) Say(_ *channel.Metadata, s channel.State, sender string, msg message.Envelope) ([]channel.Draft, error) {
	c, ok := s.(*work.Conversation)
	if !ok || c == nil {
		return nil, fault.New(fault.Internal, "%T is not the state of a %s", s, Type)
	}
	return work.Say(c.Place, Type, sender, msg)
}
