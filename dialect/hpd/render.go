package hpd

import (
	"sync"
	"weak"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/view/branch"
)

// liveExt encodes a live event's base. It goes into the ext of a live envelope,
// which is not stored.
func liveExt(b *wire.Base) []byte {
	data, err := json.Marshal(b)
	if err != nil {
		return nil // its texts were checked when they were parsed
	}
	return data
}

// baseOf returns the base of an event as readers see it.
func (s *Server) baseOf(ev *hub.Event, scope wire.Scope) (name string, base wire.Base, ok bool) {
	switch {
	case ev.Side:
		return "", wire.Base{}, false
	case ev.Live:
		name, ok = branch.WireType(ev.Envelope.Type)
		ok = ok && json.Unmarshal(ev.Envelope.Ext, &base) == nil // otherwise the ext belongs to another surface and has no HPD fields
		return name, base, ok
	}
	if name, base, ok = wire.Stored(ev.Envelope, scope); !ok {
		return "", wire.Base{}, false
	}
	return name, base.WithLive(s.notes.get(ev.Envelope, base.EventFlowID)), true
}

// render returns an event in the form of a surface's streams. The part that all
// readers share is encoded once.
func (s *Server) render(ev *hub.Event, scope wire.Scope, surface wire.Surface) ([]byte, bool) {
	encode := func() []byte {
		name, base, ok := s.baseOf(ev, scope)
		if !ok {
			return nil
		}
		return wire.AppendLive(nil, surface, name, ev.Envelope.Data, &base)
	}
	var data []byte
	if ev.Shared == nil {
		data = encode()
	} else {
		data = ev.Shared.Bytes(sharedAs[surface], encode)
	}
	return data, data != nil
}

// sharedAs are the names under which the encoded forms of an event are cached.
var sharedAs = map[wire.Surface]string{
	wire.Branches: dialectName + "/" + wire.Branches.Segment(),
	wire.Threads:  dialectName + "/" + wire.Threads.Segment(),
}

// whole are the types of events of a message that was committed whole.
var whole = map[string]bool{
	branch.MessageStarted: true, branch.ContentAdded: true, branch.MessageCompleted: true,
	branch.TextMessageStart: true, branch.TextDelta: true, branch.TextMessageEnd: true,
	branch.ReasoningMessageStart: true, branch.ReasoningDelta: true, branch.ReasoningMessageEnd: true,
	branch.ToolCallStart: true, branch.ToolCallArgs: true, branch.ToolCallEnd: true, branch.ToolCallResult: true,
}

// durableOnly reports whether an event belongs to a message that was committed
// whole. Such events are not shown live, because user interfaces render every live
// delta as the agent's.
func durableOnly(e *envelope.Envelope) bool {
	name, ok := branch.WireType(e.Type)
	return ok && whole[name] && branch.ParseExt(e.Ext).Server
}

// hidden returns durableOnly, computed once for all readers.
func hidden(ev *hub.Event) bool {
	if ev.Shared == nil {
		return durableOnly(ev.Envelope)
	}
	return ev.Shared.Bytes(dialectName+"/whole", func() []byte {
		if durableOnly(ev.Envelope) {
			return []byte{}
		}
		return nil
	}) != nil
}

// notes hold, for recent events, the fields that live readers see and the log does
// not store: for each run the fields that its events have in common, and for an
// event its own fields.
type notes struct {
	mu     sync.Mutex
	of     map[weak.Pointer[envelope.Envelope]]*wire.Base
	recent []weak.Pointer[envelope.Envelope]
	next   int

	ofTurn map[string]*wire.Base
	turns  []string
	turn   int
}

func newNotes(most int) notes {
	return notes{
		of: map[weak.Pointer[envelope.Envelope]]*wire.Base{}, recent: make([]weak.Pointer[envelope.Envelope], most),
		ofTurn: map[string]*wire.Base{}, turns: make([]string, most),
	}
}

// put stores an event's own fields.
func (n *notes) put(e *envelope.Envelope, b *wire.Base) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.of, n.recent[n.next])
	key := weak.Make(e)
	n.of[key], n.recent[n.next] = b, key
	n.next = (n.next + 1) % len(n.recent)
}

// putTurn stores the fields that the events of a run's turn have in common.
func (n *notes) putTurn(turn string, b *wire.Base) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ofTurn, n.turns[n.turn])
	n.ofTurn[turn], n.turns[n.turn] = b, turn
	n.turn = (n.turn + 1) % len(n.turns)
}

// get returns the live-only fields of an event. Events that the server made have
// only their own.
func (n *notes) get(e *envelope.Envelope, turn string) *wire.Base {
	n.mu.Lock()
	defer n.mu.Unlock()
	if own := n.of[weak.Make(e)]; own != nil {
		return own
	}
	common := n.ofTurn[turn]
	if common == nil || branch.ParseExt(e.Ext).Server {
		return nil
	}
	return common
}
