package room

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/internal/jsonscan"
	"github.com/parley-hub/parley/internal/pmap"
)

// Peer is a joined peer. An identity may have several.
type Peer struct {
	Agent    string // the identity
	Session  string
	JoinedAt int64 // Unix seconds, our clock
}

// State has the joined peers. It is immutable.
type State struct {
	Workspace, Channel string

	Purpose   string
	CreatedBy string
	CreatedAt int64
	UpdatedAt int64

	Peers  pmap.Map[Peer] // by peer id
	Agents pmap.Map[int]  // how many peers an identity is joined by

	// Left is the peer that the newest record removed; it is not in snapshots.
	Left Peer
}

// members are the identities behind the peers.
type members struct{ s *State }

func (m members) Has(agent string) bool {
	_, ok := m.s.Agents.Get(agent)
	return ok
}
func (m members) Count() int { return m.s.Agents.Len() }
func (m members) Each(yield func(agent string) bool) {
	for agent := range m.s.Agents.All() {
		if !yield(agent) {
			return
		}
	}
}

// event is the content of a record.
type event struct{ peer, session, purpose string }

func concerns(eventType string) bool {
	return eventType == TypeJoin || eventType == TypeLeave || eventType == TypePurpose
}

// maxDepth bounds what is read.
const maxDepth = 16

func read(e *envelope.Envelope) (event, bool) {
	var ev event
	if !concerns(e.Type) || jsonscan.Check(e.Data, maxDepth) != nil {
		return ev, false
	}
	purposed := false
	for name, value := range jsonscan.Members(e.Data) {
		switch string(name) {
		case "peer_id":
			ev.peer, _ = jsonscan.Text(value)
		case "session_id":
			ev.session, _ = jsonscan.Text(value)
		case "purpose":
			ev.purpose, purposed = jsonscan.Text(value)
		}
	}
	switch e.Type {
	case TypeJoin:
		return ev, ev.peer != "" && ev.session != ""
	case TypeLeave:
		return ev, ev.peer != ""
	}
	return ev, purposed && len(ev.purpose) <= MaxPurpose
}

// fold is total: a join of a joined peer and a leave of an absent one change
// nothing.
func (s *State) fold(e *envelope.Envelope, ev event) *State {
	next := *s
	next.Left = Peer{}
	at := e.CreatedAt.Unix()
	joined, present := s.Peers.Get(ev.peer)
	switch {
	case e.Type == TypePurpose:
		next.Purpose = ev.purpose
	case e.Type == TypeJoin && !present:
		next.Peers = s.Peers.Set(ev.peer, Peer{e.Sender, ev.session, at})
		n, _ := s.Agents.Get(e.Sender)
		next.Agents = s.Agents.Set(e.Sender, n+1)
	case e.Type == TypeLeave && present:
		next.Left = joined
		next.Peers = s.Peers.Delete(ev.peer)
		if n, _ := s.Agents.Get(joined.Agent); n > 1 {
			next.Agents = s.Agents.Set(joined.Agent, n-1)
		} else {
			next.Agents = s.Agents.Delete(joined.Agent)
		}
	case s.Left == Peer{}:
		return s
	default:
		return &next // no peer left with this record
	}
	if next.CreatedBy == "" {
		next.CreatedBy, next.CreatedAt = e.Sender, at
	}
	next.UpdatedAt = at
	return &next
}

// Codec writes the state.
func (Adapter) Codec() channel.Codec {
	return channel.Codec{
		Version: 1,
		Encode: func(s channel.State) ([]byte, error) {
			state, ok := s.(*State)
			if !ok || state == nil {
				return nil, fmt.Errorf("room: %T is not a state of this adapter", s)
			}
			b := &jsonbuf.Buffer{}
			state.write(b)
			return b.Result()
		},
		Decode: func(data []byte) (channel.State, error) {
			var raw struct {
				Workspace string              `json:"workspace_id"`
				Channel   string              `json:"channel"`
				Purpose   string              `json:"purpose"`
				CreatedBy string              `json:"created_by"`
				CreatedAt int64               `json:"created_at"`
				UpdatedAt int64               `json:"updated_at"`
				Peers     map[string]peerJSON `json:"peers"`
			}
			if err := json.Unmarshal(data, &raw); err != nil {
				return nil, fmt.Errorf("room: state: %w", err)
			}
			s := &State{
				Workspace: raw.Workspace, Channel: raw.Channel, Purpose: raw.Purpose,
				CreatedBy: raw.CreatedBy, CreatedAt: raw.CreatedAt, UpdatedAt: raw.UpdatedAt,
			}
			for id, p := range raw.Peers {
				s.Peers = s.Peers.Set(id, Peer(p))
				n, _ := s.Agents.Get(p.Agent)
				s.Agents = s.Agents.Set(p.Agent, n+1)
			}
			return s, nil
		},
	}
}

type peerJSON struct {
	Agent    string `json:"agent_id"`
	Session  string `json:"session_id"`
	JoinedAt int64  `json:"joined_at"`
}

func (s *State) write(b *jsonbuf.Buffer) {
	b.Open('{')
	b.Key("workspace_id").String(s.Workspace)
	b.Key("channel").String(s.Channel)
	b.Key("purpose").String(s.Purpose)
	b.Key("created_by").String(s.CreatedBy)
	b.Key("created_at").Int(int(s.CreatedAt))
	b.Key("updated_at").Int(int(s.UpdatedAt))
	b.Key("peers").Open('{')
	for id, p := range s.Peers.All() {
		p.write(b.Key(id))
	}
	b.Close('}').Close('}')
}

func (p *Peer) write(b *jsonbuf.Buffer) {
	b.Open('{')
	b.Key("agent_id").String(p.Agent)
	b.Key("session_id").String(p.Session)
	b.Key("joined_at").Int(int(p.JoinedAt))
	b.Close('}')
}
