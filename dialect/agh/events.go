package agh

import "time"

// Names of events.
const (
	PeerJoined       = "network.peer.joined"
	PeerLeft         = "network.peer.left"
	ThreadOpened     = "network.thread.opened"
	DirectRoomOpened = "network.direct_room.opened"
	MessagePersisted = "network.message.persisted"
	WorkOpened       = "network.work.opened"
	WorkTransitioned = "network.work.transitioned"
	WorkClosed       = "network.work.closed"
)

// Event tells what happened, after it is durable.
type Event struct {
	Name      string
	At        time.Time
	Workspace string
	Channel   string
	Peer      string
	Session   string
	LastSeen  time.Time
}

// event tells whoever asked for events.
func (s *Server) event(e Event) {
	if s.cfg.OnEvent == nil {
		return
	}
	e.At = s.cfg.Now()
	defer func() {
		if r := recover(); r != nil {
			s.cfg.Log.Error("a hook of the AGH network failed", "event", e.Name, "panic", r)
		}
	}()
	s.cfg.OnEvent(e)
}
