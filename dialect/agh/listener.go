package agh

import (
	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/room"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// listener follows what becomes durable in AGH's channels. It is called in the
// order of each channel's log, before whoever posted is answered, so that an
// answer is never ahead of what this process knows.
type listener struct {
	hub.NoopListener
	s *Server
}

// EnvelopePosted takes over joins and leaves, and queues messages.
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
	message, data, err := wire.Message(e)
	if err != nil {
		return // a room that was resolved, or what this build cannot read
	}
	sp.deliver(message, data, e)
}

// follow takes over a record of a room.
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
	case room.TypeLeave:
		sp.leave(r, text("peer_id"))
	}
}
