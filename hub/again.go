package hub

import (
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// again is what a participant was handed a second time, and may therefore be at
// work on twice: its turn, which it asked for, and what was replayed to it.
// Nobody outlives the hub in the middle of a turn, so it is kept in memory.
type again struct {
	turn        string // the envelope to answer
	taken       bool   // it was answered
	first, last string // of what was replayed
}

func (ch *held) againOf(agent string) *again {
	more := ch.more()
	if more.again == nil {
		more.again = map[string]*again{}
	}
	if more.again[agent] == nil {
		more.again[agent] = &again{}
	}
	return more.again[agent]
}

// handTurn notes that a participant was told of its turn, perhaps not for the
// first time.
func (ch *held) handTurn(m *channel.Metadata, agent, trigger string) {
	if trigger == "" || !m.Has(agent) {
		return
	}
	if a := ch.againOf(agent); a.turn != trigger {
		a.turn, a.taken = trigger, false
	}
}

// handReplay notes that an envelope was replayed to a participant.
func (ch *held) handReplay(m *channel.Metadata, agent string, e *envelope.Envelope) {
	if !envelope.IsContent(e.Type) || !m.Has(agent) {
		return
	}
	a := ch.againOf(agent)
	if a.first == "" || e.ID < a.first {
		a.first = e.ID
	}
	a.last = max(a.last, e.ID)
}

// answers returns what is known of a participant's second hand, if an envelope
// answers something.
func (ch *held) answers(e *envelope.Envelope) *again {
	if ch.rare == nil || e.Causation == "" || e.Type != envelope.TypeText && e.Type != envelope.TypePacket {
		return nil
	}
	return ch.rare.again[e.Sender]
}

// tookAlready refuses the second answer to a turn that came to its speaker
// twice. Turn order alone would let it pass when the turn has come round again.
func (ch *held) tookAlready(e *envelope.Envelope) error {
	a := ch.answers(e)
	if a == nil || !a.taken || a.turn != e.Causation {
		return nil
	}
	turn, ok := ch.adapter.Expected(ch.meta, ch.state)
	if !ok || turn.Agent != e.Sender || turn.Trigger == e.Causation {
		return nil
	}
	return fault.New(fault.Protocol, "'%s' has answered '%s' already; channel '%s' expects its answer to '%s'",
		e.Sender, e.Causation, ch.id, turn.Trigger)
}

// took notes the answer to a turn.
func (ch *held) took(e *envelope.Envelope) {
	if a := ch.answers(e); a != nil && a.turn == e.Causation {
		a.taken = true
	}
}

// handedOn refuses an answer by a connection that the sender has left for
// another, to which what is answered was replayed: it is answered there.
func (h *Hub) handedOn(ch *held, sender *member, e *envelope.Envelope, by Caller) error {
	at, ok := by.(Endpoint)
	if !ok || h.opts.TrustClients {
		return nil
	}
	a := ch.answers(e)
	if a == nil || e.Causation < a.first || e.Causation > a.last || !sender.link.elsewhere(at) {
		return nil
	}
	return fault.New(fault.AccessDenied, "'%s' has attached at another connection, which was handed '%s' to answer", e.Sender, e.Causation)
}

// elsewhere reports whether an identity reads at another endpoint.
func (l *link) elsewhere(at Endpoint) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endpoint != nil && l.endpoint != at
}
