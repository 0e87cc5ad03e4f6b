package agh

import (
	"slices"
	"strings"
	"time"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

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

// eventNames are the events in the order in which those of one write are reported.
var eventNames = []string{PeerJoined, PeerLeft, ThreadOpened, DirectRoomOpened, MessagePersisted, WorkOpened, WorkTransitioned, WorkClosed}

// checkEvent takes the name of an event.
func checkEvent(name string) error {
	if slices.Contains(eventNames, name) {
		return nil
	}
	return fault.New(fault.Invalid, "%.100q is not an event of the AGH network; the events are %s", name, strings.Join(eventNames, ", "))
}

// Event reports what happened, after it is durable. Events of one write come in the
// order of eventNames; duplicates cause none.
type Event struct {
	Name      string       `json:"event"`
	At        time.Time    `json:"timestamp"`
	Workspace string       `json:"workspace_id,omitempty"`
	Session   string       `json:"session_id,omitempty"`
	Channel   string       `json:"channel,omitempty"`
	Surface   wire.Surface `json:"surface,omitempty"`
	Thread    string       `json:"thread_id,omitempty"`
	Direct    string       `json:"direct_id,omitempty"`
	Message   string       `json:"message_id,omitempty"`
	Kind      wire.Kind    `json:"kind,omitempty"`
	Direction string       `json:"direction,omitempty"`
	Work      string       `json:"work_id,omitempty"`
	WorkState string       `json:"work_state,omitempty"`
	Peer      string       `json:"peer_id,omitempty"`
	From      string       `json:"peer_from,omitempty"`
	To        string       `json:"peer_to,omitempty"`
	LastSeen  time.Time    `json:"last_seen_at,omitzero"`
	Trace     string       `json:"trace_id,omitempty"`
	Causation string       `json:"causation_id,omitempty"`
}

// event calls OnEvent. A panic in it is logged.
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

// peerEvent tells of a hosted peer.
func (p *peer) peerEvent(name string) {
	p.room.space.s.event(Event{Name: name, Workspace: p.room.space.name, Channel: p.room.channel, Session: p.session, Peer: p.id})
}

// tellEvents reports what a stored message opened and moved.
func (r *netChannel) tellEvents(e *wire.Envelope, record *envelope.Envelope, c change) {
	s := r.space.s
	if s.cfg.OnEvent == nil {
		return
	}
	ev := Event{
		Workspace: r.space.name, Session: r.sessionOf(e.From), Channel: r.channel, Surface: e.Surface, Thread: clone(e.Thread), Direct: clone(e.Direct),
		Message: clone(e.ID), Kind: e.Kind, Direction: string(r.space.direction(e, record)), Work: clone(e.Work), WorkState: c.now.name(),
		From: clone(e.From), To: clone(e.To), Peer: clone(e.From), Trace: clone(e.Trace), Causation: clone(e.Causation),
	}
	tell := func(name string, when bool) {
		if when {
			ev.Name = name
			s.event(ev)
		}
	}
	tell(ThreadOpened, c.opened && e.Surface == wire.Thread)
	tell(DirectRoomOpened, c.opened && e.Surface == wire.Direct)
	tell(MessagePersisted, true)
	tell(WorkOpened, c.opensWork())
	tell(WorkTransitioned, c.movesWork())
	tell(WorkClosed, c.closesWork())
}
