package hub

import (
	"slices"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// redelivered records what a participant was sent a second time and may therefore
// work on twice: its turn, which it asked for, and the envelopes replayed to it.
// It is kept in memory only: a turn in progress does not survive the hub.
type redelivered struct {
	turn        string // the envelope to answer
	taken       bool   // it was answered
	first, last string // of what was replayed
}

func (ch *loadedChannel) redeliveredTo(agent string) *redelivered {
	more := ch.ensureExtras()
	if more.redelivered == nil {
		more.redelivered = map[string]*redelivered{}
	}
	if more.redelivered[agent] == nil {
		more.redelivered[agent] = &redelivered{}
	}
	return more.redelivered[agent]
}

// noteTurn records that a participant was told of its turn, perhaps not for the
// first time.
func (ch *loadedChannel) noteTurn(m *channel.Metadata, agent, trigger string) {
	if trigger == "" || !m.Has(agent) {
		return
	}
	if a := ch.redeliveredTo(agent); a.turn != trigger {
		a.turn, a.taken = trigger, false
	}
}

// noteReplay records that an envelope was replayed to a participant.
func (ch *loadedChannel) noteReplay(m *channel.Metadata, agent string, e *envelope.Envelope) {
	if !envelope.IsContent(e.Type) || !m.Has(agent) {
		return
	}
	a := ch.redeliveredTo(agent)
	if a.first == "" || e.ID < a.first {
		a.first = e.ID
	}
	a.last = max(a.last, e.ID)
}

// redeliveredFor returns what was redelivered to an envelope's sender, or nil if
// the envelope is not an answer.
func (ch *loadedChannel) redeliveredFor(e *envelope.Envelope) *redelivered {
	if ch.extras == nil || e.Causation == "" || e.Type != envelope.TypeText && e.Type != envelope.TypePacket {
		return nil
	}
	return ch.extras.redelivered[e.Sender]
}

// answeredTwice refuses the second answer to a turn that was delivered to its
// speaker twice. Turn order alone would accept it once it is the speaker's turn
// again.
func (ch *loadedChannel) answeredTwice(e *envelope.Envelope) error {
	a := ch.redeliveredFor(e)
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

// noteAnswer records that a turn was answered.
func (ch *loadedChannel) noteAnswer(e *envelope.Envelope) {
	if a := ch.redeliveredFor(e); a != nil && a.turn == e.Causation {
		a.taken = true
	}
}

// answeredElsewhere refuses an answer from a connection that its sender has
// replaced by another one, if the envelope it answers was replayed to the new
// connection: the answer comes from there.
func (h *Hub) answeredElsewhere(ch *loadedChannel, sender *member, e *envelope.Envelope, by *Caller) error {
	if by == nil || by.Connection == "" || h.opts.TrustClients {
		return nil
	}
	a := ch.redeliveredFor(e)
	if a == nil || e.Causation < a.first || e.Causation > a.last || !sender.link.elsewhere(by.Connection) {
		return nil
	}
	return fault.New(fault.AccessDenied, "'%s' has attached at another connection, which was handed '%s' to answer", e.Sender, e.Causation)
}

// elsewhere reports whether an identity reads, and not at this endpoint.
func (l *link) elsewhere(endpoint string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.bonds) > 0 && !slices.ContainsFunc(l.bonds, func(b *bond) bool { return b.endpoint.ID() == endpoint })
}
