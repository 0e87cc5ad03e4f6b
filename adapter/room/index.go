package room

import (
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// The index entries of a room, under the adapter's own prefix.
//
//	room/CHANNEL        the row that lists show
//	peer/CHANNEL/PEER   the identity, session and time of a joined peer
//	session/SESSION     {"channel","peer_id"} of a session
const (
	prefixRoom    = "room/"
	prefixPeer    = "peer/"
	prefixSession = "session/"
)

// SessionClaim is the name that a session takes in its workspace.
func SessionClaim(session string) string { return prefixSession + session }

func (s *State) effects(e *envelope.Envelope, ev event) channel.Effects {
	var effects channel.Effects
	put := func(key string, write func(*jsonbuf.Buffer)) {
		b := &jsonbuf.Buffer{}
		write(b)
		if value, err := b.Result(); err == nil { // texts that were read as JSON can be written
			effects.Index = append(effects.Index, channel.IndexEntry{Key: key, Value: value})
		}
	}
	put(prefixRoom+s.Channel, s.row)
	switch e.Type {
	case TypeJoin:
		p, _ := s.Peers.Get(ev.peer)
		put(prefixPeer+s.Channel+"/"+ev.peer, p.write)
		put(prefixSession+p.Session, func(b *jsonbuf.Buffer) {
			b.Open('{').Key("channel").String(s.Channel).Key("peer_id").String(ev.peer).Close('}')
		})
		effects.Claims = []string{SessionClaim(p.Session)}
	case TypeLeave:
		effects.Unindex = []string{prefixPeer + s.Channel + "/" + ev.peer}
		if s.Left.Session != "" {
			effects.Unindex = append(effects.Unindex, prefixSession+s.Left.Session)
			effects.Release = []string{SessionClaim(s.Left.Session)}
		}
	}
	return effects
}

// row is what lists show of a room.
func (s *State) row(b *jsonbuf.Buffer) {
	b.Open('{')
	b.Key("channel").String(s.Channel)
	b.Key("purpose").String(s.Purpose)
	b.Key("created_by").String(s.CreatedBy)
	b.Key("created_at").Int(int(s.CreatedAt))
	b.Key("updated_at").Int(int(s.UpdatedAt))
	b.Key("peers").Int(s.Peers.Len())
	b.Close('}')
}
