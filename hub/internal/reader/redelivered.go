package reader

import "github.com/parley-hub/parley/envelope"

// Redelivered records what participants of a channel were sent a second time and may
// therefore work on twice. It is kept in memory only: a turn in progress does not
// survive the hub. Callers hold the channel's lock.
type Redelivered struct {
	by map[string]*redelivered // by participant
}

// redelivered holds the turn that a participant asked for, and the envelopes that
// were replayed to the participant.
type redelivered struct {
	turn        string // the envelope to answer
	answered    bool
	first, last string // of what was replayed
}

func (r *Redelivered) to(agent string) *redelivered {
	if r.by == nil {
		r.by = map[string]*redelivered{}
	}
	if r.by[agent] == nil {
		r.by[agent] = &redelivered{}
	}
	return r.by[agent]
}

// NoteTurn records that a participant was notified of its turn, perhaps not for the
// first time.
func (r *Redelivered) NoteTurn(agent, trigger string) {
	if a := r.to(agent); a.turn != trigger {
		a.turn, a.answered = trigger, false
	}
}

// NoteReplay records that an envelope was replayed to a participant.
func (r *Redelivered) NoteReplay(agent string, e *envelope.Envelope) {
	a := r.to(agent)
	if a.first == "" || e.ID < a.first {
		a.first = e.ID
	}
	a.last = max(a.last, e.ID)
}

// of returns what was redelivered to an envelope's sender, or nil if the envelope
// is not an answer.
func (r *Redelivered) of(e *envelope.Envelope) *redelivered {
	if e.Causation == "" || e.Type != envelope.TypeText && e.Type != envelope.TypePacket {
		return nil
	}
	return r.by[e.Sender]
}

// Answered reports whether an envelope answers a turn that its sender has answered
// before.
func (r *Redelivered) Answered(e *envelope.Envelope) bool {
	a := r.of(e)
	return a != nil && a.answered && a.turn == e.Causation
}

// NoteAnswer records that a turn was answered.
func (r *Redelivered) NoteAnswer(e *envelope.Envelope) {
	if a := r.of(e); a != nil && a.turn == e.Causation {
		a.answered = true
	}
}

// Replayed reports whether an envelope answers one that was replayed to its sender.
func (r *Redelivered) Replayed(e *envelope.Envelope) bool {
	a := r.of(e)
	return a != nil && e.Causation >= a.first && e.Causation <= a.last
}
