// Package room governs AGH's channels: their joined peers and their purpose. Messages go
// into threads and direct rooms, which take their members from here. It is pure, and
// never closes a room.
package room

import (
	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// Type is the name under which the adapter is registered.
const Type = work.RoomType

// Types of a room's records. None of them is ever on AGH's wire.
const (
	TypeJoin    = "agh.join"
	TypeLeave   = "agh.leave"
	TypePurpose = "agh.purpose"
)

// Default limits.
const (
	DefaultMaxPeers = 1000
	MaxPurpose      = 4096
)

// Options of the adapter; the zero value has every default.
type Options struct {
	// MaxPeers is how many peers are joined to one room (agh.limits.peers).
	MaxPeers int
}

// Adapter is stateless code.
type Adapter struct{ maxPeers int }

// New makes the adapter.
func New(o Options) Adapter {
	if o.MaxPeers <= 0 {
		o.MaxPeers = DefaultMaxPeers
	}
	return Adapter{o.MaxPeers}
}

var manifest = channel.Manifest{
	Type:        Type,
	Version:     1,
	KnobsSchema: []byte(`{"workspace_id":"str","channel":"str"}`),
	DefaultView: "full_transcript",
}

// Manifest is constant.
func (Adapter) Manifest() channel.Manifest { return manifest }

// Opening is at once, with the first join or purpose.
func (Adapter) Opening() channel.Opening { return channel.AtOnce }

// Dialect alone opens rooms.
func (Adapter) Dialect() string { return work.Dialect }

// ValidateCreate requires the knobs that say where the room is.
func (Adapter) ValidateCreate(m *channel.Metadata) error {
	_, err := work.ReadKnobs(m)
	return err
}

// Initial is an empty room.
func (Adapter) Initial(m *channel.Metadata) (channel.State, error) {
	k, err := work.ReadKnobs(m)
	if err != nil {
		return nil, err
	}
	return &State{Workspace: k.Workspace, Channel: k.Channel}, nil
}

// ValidateSend checks joins, leaves and purposes; other types are refused.
func (a Adapter) ValidateSend(_ *channel.Metadata, s channel.State, e *envelope.Envelope) error {
	state, ok := s.(*State)
	event, known := read(e)
	switch {
	case !concerns(e.Type) || !ok || e.Origin.Dialect != work.Dialect: // only the dialect can set it
		return work.RefuseType(Type, e.Type)
	case !known:
		return fault.New(fault.Invalid, "%s lacks what it is about: join has peer_id and session_id, leave peer_id, purpose a text of at most %d bytes", e.Type, MaxPurpose)
	}
	joined, present := state.Peers.Get(event.peer)
	switch {
	case e.Type == TypeJoin && present:
		return fault.New(fault.Conflict, "the peer %q is joined to %q; leave first, or choose another id", event.peer, state.Channel).Because(fault.PeerJoined)
	case e.Type == TypeJoin && state.Peers.Len() >= a.maxPeers:
		return fault.New(fault.TooLarge, "%d peers are joined to %q, which is the limit; raise agh.limits.peers", state.Peers.Len(), state.Channel)
	case e.Type == TypeLeave && !present:
		return fault.New(fault.NotFound, "no peer %q is joined to %q", event.peer, state.Channel).Because(fault.PeerAbsent)
	case e.Type == TypeLeave && joined.Agent != e.Sender:
		return fault.New(fault.AccessDenied, "the peer %q is joined by somebody else", event.peer)
	}
	return nil
}

// Admits lets agents join that are not members yet.
func (Adapter) Admits(*channel.Metadata, channel.State, channel.Members, string) bool { return true }

// Fold applies joins and leaves.
func (Adapter) Fold(s channel.State, e *envelope.Envelope) channel.State {
	state, ok := s.(*State)
	event, known := read(e)
	if !ok || state == nil || !known {
		return s
	}
	return state.fold(e, event)
}

// OnAccepted updates the lists of rooms, peers and sessions.
func (Adapter) OnAccepted(_ *channel.Metadata, s channel.State, e *envelope.Envelope) channel.Effects {
	state, ok := s.(*State)
	event, known := read(e)
	if !ok || state == nil || !known {
		return channel.Effects{}
	}
	return state.effects(e, event)
}

// Expected returns false: there are no turns.
func (Adapter) Expected(*channel.Metadata, channel.State) (channel.Turn, bool) {
	return channel.Turn{}, false
}

// Recipients is always empty: joins are shown to followers, not delivered.
func (Adapter) Recipients(*channel.Metadata, channel.State, channel.Members, *envelope.Envelope) []string {
	return nil
}

// Visible reports whether an agent is a member.
func (Adapter) Visible(_ *channel.Metadata, _ channel.State, in channel.Members, _ *envelope.Envelope, agent string) bool {
	return in.Has(agent)
}

// Members are the identities behind the joined peers.
func (Adapter) Members(_ *channel.Metadata, s channel.State) channel.Members {
	state, ok := s.(*State)
	if !ok || state == nil {
		return channel.NewMembers()
	}
	return members{state}
}
