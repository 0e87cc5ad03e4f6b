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

// liveExt is a live event's base: what its envelope carries beside the payload
// is stored nowhere.
func liveExt(b *wire.Base) []byte {
	data, err := json.Marshal(b)
	if err != nil {
		return nil // texts were checked when they were parsed
	}
	return data
}

// baseOf is the base of an event as readers are shown it.
func (s *Server) baseOf(ev *hub.Event, scope wire.Scope) (name string, base wire.Base, ok bool) {
	name, base, ok = wire.Stored(ev.Envelope, scope)
	if !ok || ev.Side {
		return "", wire.Base{}, false
	}
	if !ev.Live {
		return name, base.WithLive(s.notes.get(ev.Envelope)), true
	}
	base = wire.Base{}
	if json.Unmarshal(ev.Envelope.Ext, &base) != nil {
		return "", wire.Base{}, false // another surface's: nothing of HPD's
	}
	return name, base, true
}

// render is an event as a stream of a surface shows it.
func (s *Server) render(ev *hub.Event, scope wire.Scope, surface wire.Surface) ([]byte, bool) {
	name, base, ok := s.baseOf(ev, scope)
	if !ok {
		return nil, false
	}
	encode := func() []byte { return wire.AppendLive(nil, surface, name, ev.Envelope.Data, &base) }
	if ev.Shared == nil {
		return encode(), true
	}
	return ev.Shared.Bytes(dialectName+"/"+surface.Segment(), encode), true
}

// whole are the types that a message which was committed whole is made of.
var whole = map[string]bool{
	branch.MessageStarted: true, branch.ContentAdded: true, branch.MessageCompleted: true,
	branch.TextMessageStart: true, branch.TextDelta: true, branch.TextMessageEnd: true,
	branch.ReasoningMessageStart: true, branch.ReasoningDelta: true, branch.ReasoningMessageEnd: true,
	branch.ToolCallStart: true, branch.ToolCallArgs: true, branch.ToolCallEnd: true, branch.ToolCallResult: true,
}

// durableOnly reports whether an event is of a message that was committed
// whole: interfaces render every live delta as the agent's.
func durableOnly(e *envelope.Envelope) bool {
	name, ok := branch.WireType(e.Type)
	return ok && whole[name] && branch.ParseExt(e.Ext).Server
}

// notes remember, for the events of late, what readers that watch are shown and
// the log does not keep.
type notes struct {
	mu     sync.Mutex
	of     map[weak.Pointer[envelope.Envelope]]*wire.Base
	recent [8192]weak.Pointer[envelope.Envelope]
	next   int
}

func (n *notes) put(e *envelope.Envelope, b *wire.Base) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = map[weak.Pointer[envelope.Envelope]]*wire.Base{}
	}
	delete(n.of, n.recent[n.next])
	key := weak.Make(e)
	n.of[key], n.recent[n.next] = b, key
	n.next = (n.next + 1) % len(n.recent)
}

func (n *notes) get(e *envelope.Envelope) *wire.Base {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.of[weak.Make(e)]
}
