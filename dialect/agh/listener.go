package agh

import (
	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/room"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/agh/bridge"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// listener receives what becomes durable in AGH's channels, in the order of each
// channel's log, before the poster is answered. So this process knows everything that
// was acknowledged.
type listener struct {
	hub.NoopListener
	s *Server
}

// EnvelopePosted applies joins and leaves, and queues messages.
func (l *listener) EnvelopePosted(e *envelope.Envelope, m *channel.Metadata) {
	switch m.Manifest.Type {
	case room.Type, thread.Type, direct.Type:
	default:
		return
	}
	l.s.mu.RLock()
	sp := l.s.homes[hub.HomeOf(m.ID)]
	l.s.mu.RUnlock()
	if sp == nil {
		return
	}
	if m.Manifest.Type == room.Type {
		sp.follow(e, m)
		return
	}
	if e.Type == direct.TypeResolve {
		sp.resolved(m)
		return
	}
	message, data, err := l.s.submitted.message(e)
	if err != nil {
		return // written by a newer version
	}
	sp.deliver(message, data, e)
	if message.Work != "" && message.Surface == wire.Direct {
		l.s.bridge.Heard(bridge.Peer{Workspace: sp.name, ID: clone(message.From)}, message.Work, m.ID)
	}
}

// AgentEvent handles the registration and the removal of a peer's identity.
func (l *listener) AgentEvent(ev hub.AgentEvent) {
	switch ev.Kind {
	case "registered":
		l.s.bridge.Registered(ev.Passport)
	case "unregistered":
		l.s.bridge.Unregistered(ev.Passport)
		l.s.catalogs.Delete(ev.Agent)
	case "resume_set":
		l.s.catalogs.Delete(ev.Agent) // its peers greet with it at the next interval
	}
}

// resolved adds a direct room that was opened without a message.
func (sp *space) resolved(m *channel.Metadata) {
	k, err := work.ReadKnobs(m)
	if err != nil {
		return
	}
	r, err := sp.find(k.Channel)
	if err != nil {
		return
	}
	r.update(func(t *tally) { t.conversations[wire.Direct]++ })
	sp.s.metrics.directs.WithLabelValues(sp.s.metrics.label(r.channel)).Inc()
	sp.s.event(Event{Name: DirectRoomOpened, Workspace: sp.name, Channel: r.channel, Surface: wire.Direct, Direct: k.Direct})
}

// ChannelEvent applies the deletion of a channel. A room ends when its deletion
// begins, and its conversations are deleted before it.
func (l *listener) ChannelEvent(ev hub.ChannelEvent) {
	ends := ev.Kind == "closed" && ev.Metadata.Manifest.Type == room.Type
	if ev.Kind != "deleted" && !ends {
		return
	}
	l.s.mu.RLock()
	sp := l.s.homes[hub.HomeOf(ev.Channel)]
	l.s.mu.RUnlock()
	if sp == nil {
		return
	}
	switch ev.Metadata.Manifest.Type {
	case room.Type:
		sp.forgetRoom(ev.Channel)
	case thread.Type, direct.Type:
		if k, err := work.ReadKnobs(ev.Metadata); err == nil {
			if r, err := sp.find(k.Channel); err == nil {
				r.forget()
			}
		}
	}
}

// forgetRoom removes a deleted channel and its joined peers.
func (sp *space) forgetRoom(id string) {
	sp.mu.Lock()
	var gone *netChannel
	for name, r := range sp.rooms {
		if r.id == id {
			gone = r
			delete(sp.rooms, name)
		}
	}
	sp.mu.Unlock()
	if gone == nil {
		return
	}
	for _, p := range gone.everyone() {
		sp.leave(gone, p.id)
		sp.s.release(p)
		p.peerEvent(PeerLeft)
	}
	gone.expel(func(*remote) bool { return true })
}

// follow applies a record of a room.
func (sp *space) follow(e *envelope.Envelope, m *channel.Metadata) {
	r := sp.room(m.Name, m.ID)
	text := func(name string) string {
		s, _ := jsonscan.Text(jsonscan.Member(e.Data, name))
		return s
	}
	at := e.CreatedAt.Unix()
	r.mu.Lock()
	if r.row.CreatedBy == "" {
		r.row.CreatedBy, r.row.CreatedAt = e.Sender, at
	}
	r.row.UpdatedAt = at
	if e.Type == room.TypePurpose {
		r.row.Purpose = text("purpose")
	}
	r.mu.Unlock()
	switch e.Type {
	case room.TypeJoin:
		p := sp.join(r, text("peer_id"), room.Peer{Agent: e.Sender, Session: text("session_id"), JoinedAt: at})
		p.queue.begin(e.ID)
		p.peerEvent(PeerJoined)
		sp.s.bridge.Came(bridge.Peer{Workspace: sp.name, ID: p.id})
	case room.TypeLeave:
		if p := sp.leave(r, text("peer_id")); p != nil {
			p.peerEvent(PeerLeft)
			sp.s.bridge.Went(bridge.Peer{Workspace: sp.name, ID: p.id})
		}
	}
}
