// Package direct governs AGH's direct rooms: conversations of two peers in a
// channel of a workspace. Who else may read them is a matter of rights, not of
// encryption. It is pure, and never closes one.
package direct

import (
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/message"
)

// Type is the name under which the adapter is registered.
const Type = "direct"

// TypeResolve is the record of a room that was opened before its first message. It is
// never on AGH's wire.
const TypeResolve = "agh.resolve"

// resolves reports whether a record opens a room without a message.
func resolves(e *envelope.Envelope) bool {
	return e.Type == TypeResolve && e.Origin.Dialect == work.Dialect
}

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
	KnobsSchema: []byte(`{"workspace_id":"str","channel":"str","direct_id":"str","peers":"list"}`),
	DefaultView: "full_transcript",
}

// Manifest is constant.
func (Adapter) Manifest() channel.Manifest { return manifest }

// Private shows a room only to its two peers and to operators.
func (Adapter) Private() bool { return true }

// ValidateCreate requires two peers and their identities: two participants, or one that
// is joined by both peers.
func (Adapter) ValidateCreate(m *channel.Metadata) error {
	if _, err := knobs(m); err != nil {
		return err
	}
	if n := len(m.Participants); n != 1 && n != 2 {
		return fault.New(fault.Invalid, "a direct room has the participants behind its two peers, not %d", n)
	}
	return nil
}

func knobs(m *channel.Metadata) (work.Knobs, error) {
	k, err := work.ReadKnobs(m)
	switch {
	case err != nil:
	case k.Direct == "":
		err = fault.New(fault.Invalid, "a direct room has the knob direct_id")
	case len(k.Peers) != 2 || k.Peers[0] == "" || k.Peers[0] >= k.Peers[1]:
		err = fault.New(fault.Invalid, "a direct room has the knob peers: two different peer ids in ascending order")
	}
	return k, err
}

// State is the folded state of a direct room.
type State struct {
	Peers [2]string // sorted
	*work.Conversation
}

// Initial is the state before the first message.
func (Adapter) Initial(m *channel.Metadata) (channel.State, error) {
	k, err := knobs(m)
	if err != nil {
		return nil, err
	}
	return &State{
		Peers:        [2]string{k.Peers[0], k.Peers[1]},
		Conversation: &work.Conversation{Place: work.Place{Workspace: k.Workspace, Channel: k.Channel, ID: k.Direct}},
	}, nil
}

// ValidateSend lets the two peers speak to each other, and enforces the rules of work.
// Membership is checked first: a message that is refused for it binds no work.
func (a Adapter) ValidateSend(m *channel.Metadata, s channel.State, e *envelope.Envelope) error {
	state, ok := s.(*State)
	if !ok {
		return work.RefuseType(Type, e.Type)
	}
	if e.Origin.Dialect != work.Dialect && !m.Has(e.Sender) {
		return state.refuse()
	}
	if resolves(e) {
		if state.Messages > 0 || state.Resolved > 0 {
			return fault.New(fault.Conflict, "the direct room of %q and %q is open", state.Peers[0], state.Peers[1])
		}
		return nil
	}
	if m, ok := work.ReadHead(e); ok && !state.between(&m) {
		return state.refuse()
	}
	return work.Validate(Type, state.Conversation, e, a.maxWork)
}

func (s *State) refuse() error {
	return fault.New(fault.AccessDenied, "a direct room is for its two peers, %q and %q", s.Peers[0], s.Peers[1])
}

// Admits accepts a sender that took a peer's name after the room was opened: a peer
// that moves to another runtime keeps its name and its rooms. Only the dialect knows
// who that is, so ValidateSend trusts the dialect alone.
func (Adapter) Admits(*channel.Metadata, channel.State, channel.Members, string) bool { return true }

// between reports whether a message goes from one of the peers to the other,
// or to the room.
func (s *State) between(m *work.Message) bool {
	a, b := s.Peers[0], s.Peers[1]
	return m.From == a && (m.To == "" || m.To == b) || m.From == b && (m.To == "" || m.To == a)
}

// Fold counts messages and applies steps of work.
func (Adapter) Fold(s channel.State, e *envelope.Envelope) channel.State {
	state, ok := s.(*State)
	if !ok || state == nil {
		return s
	}
	if resolves(e) {
		return &State{state.Peers, state.Conversation.Resolve(e.CreatedAt.Unix())}
	}
	m, ok := work.Read(e)
	if !ok || !state.between(&m) {
		return s
	}
	return &State{state.Peers, state.Conversation.FoldRecord(e, &m)}
}

// OnAccepted claims new work and updates the lists.
func (Adapter) OnAccepted(_ *channel.Metadata, s channel.State, e *envelope.Envelope) channel.Effects {
	state, ok := s.(*State)
	if !ok || state == nil {
		return channel.Effects{}
	}
	if resolves(e) {
		effects, err := state.Listing(state.Peers[:])
		if err != nil {
			return channel.Effects{} // ids that were read as JSON can be written
		}
		return effects
	}
	if m, ok := work.Head(state.Conversation, e); !ok || !state.between(&m) {
		return channel.Effects{}
	}
	return work.OnAccepted(state.Conversation, e, state.Peers[:])
}

// Recipients returns the other participant, except for a receipt or trace without
// addressee.
func (Adapter) Recipients(_ *channel.Metadata, s channel.State, in channel.Members, e *envelope.Envelope) []string {
	var c *work.Conversation
	if state, ok := s.(*State); ok && state != nil {
		c = state.Conversation
	}
	m, ok := work.Head(c, e)
	if !ok || m.To == "" && !m.Opens() {
		return nil
	}
	return work.Others(in, e.Sender)
}

// Visible shows messages to the two peers only, whatever the role of others.
func (Adapter) Visible(_ *channel.Metadata, _ channel.State, in channel.Members, _ *envelope.Envelope, agent string) bool {
	return in.Has(agent)
}

// Codec writes the state.
func (Adapter) Codec() channel.Codec {
	inner := work.Codec()
	return channel.Codec{
		Version: inner.Version,
		Encode: func(s channel.State) ([]byte, error) {
			state, ok := s.(*State)
			if !ok || state == nil {
				return nil, fmt.Errorf("direct: %T is not a state of this adapter", s)
			}
			text, err := inner.Encode(state.Conversation)
			if err != nil {
				return nil, err
			}
			b := &jsonbuf.Buffer{}
			b.Open('{')
			b.Key("peers").Strings(state.Peers[:])
			b.Key("conversation").Object(text)
			return b.Close('}').Result()
		},
		Decode: func(data []byte) (channel.State, error) {
			var raw struct {
				Peers        [2]string      `json:"peers"`
				Conversation jsontext.Value `json:"conversation"`
			}
			if err := json.Unmarshal(data, &raw); err != nil {
				return nil, fmt.Errorf("direct: state: %w", err)
			}
			s, err := inner.Decode(raw.Conversation)
			if err != nil {
				return nil, err
			}
			conversation, _ := s.(*work.Conversation) // it always is one
			return &State{raw.Peers, conversation}, nil
		},
	}
}

// Say says a message to the other peer of the room.
func (Adapter) Say(_ *channel.Metadata, s channel.State, sender string, msg message.Envelope) ([]channel.Draft, error) {
	state, ok := s.(*State)
	if !ok || state == nil {
		return nil, fault.New(fault.Internal, "%T is not the state of a %s", s, Type)
	}
	return work.Say(state.Conversation, Type, sender, msg)
}
