package work

import (
	"fmt"

	"github.com/parley-hub/parley/fault"
)

// State is the state of work.
type State int

// The states of work. None means that there is no work.
const (
	None State = iota
	Submitted
	Working
	NeedsInput
	Completed
	Failed
	Canceled
)

var stateNames = [...]string{"", "submitted", "working", "needs_input", "completed", "failed", "canceled"}

func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("state(%d)", int(s))
	}
	return stateNames[s]
}

// ParseState reads a state's name.
func ParseState(name string) (State, bool) {
	for i, known := range stateNames[1:] {
		if known == name {
			return State(i + 1), true
		}
	}
	return None, false
}

// Terminal reports whether work has ended.
func (s State) Terminal() bool { return s == Completed || s == Failed || s == Canceled }

// Work is one piece of work between two peers. Times are the senders' clocks.
type Work struct {
	Opener, Target string
	State          State
	OpenedAt       int64
	LastAt         int64
	TerminalAt     int64 // 0: not yet
}

// Judge returns what a message makes of the work it names. It checks in the order of
// the specification: who acts, to whom, whether the work has ended, which step. Unknown
// work is the zero Work. The claim of the work, not this function, binds it to one
// conversation.
func Judge(w Work, m *Message) (Work, error) {
	if w.State == None {
		return open(m)
	}
	other, takesPart := w.counterparty(m.From)
	switch {
	case !takesPart:
		return w, refuse(fault.WorkActor, "%q takes no part in the work %q, which is between %q and %q", m.From, m.Work, w.Opener, w.Target)
	case m.Opens() && m.To == "":
		return w, fault.New(fault.Invalid, "a message on the work %q names its counterparty %q in `to`", m.Work, other)
	case m.Opens() && m.To != other:
		return w, refuse(fault.WorkActor, "the work %q is between %q and %q; %q has no part in it", m.Work, w.Opener, w.Target, m.To)
	case w.State.Terminal():
		return w, refuse(fault.WorkClosed, "the work %q is %s; open new work", m.Work, w.State)
	}
	next, ok := step(w.State, m)
	if !ok {
		return w, refuse(fault.WorkStep, "the work %q is %s and does not become %q", m.Work, w.State, m.State)
	}
	w.State = next
	w.LastAt = max(w.LastAt, m.TS)
	if next.Terminal() {
		w.TerminalAt = m.TS
	}
	return w, nil
}

func open(m *Message) (Work, error) {
	switch {
	case !m.Opens():
		return Work{}, refuse(fault.WorkUnknown, "nobody has opened the work %q in this conversation", m.Work)
	case m.To == "":
		return Work{}, fault.New(fault.Invalid, "new work needs an addressee in `to`")
	case m.To == m.From:
		return Work{}, fault.New(fault.Invalid, "work is between two peers, and %q is both of them", m.From)
	}
	return Work{Opener: m.From, Target: m.To, State: Submitted, OpenedAt: m.TS, LastAt: m.TS}, nil
}

func (w *Work) counterparty(peer string) (string, bool) {
	switch peer {
	case w.Opener:
		return w.Target, true
	case w.Target:
		return w.Opener, true
	}
	return "", false
}

// step is the table of legal moves of work that has not ended.
func step(now State, m *Message) (State, bool) {
	switch m.Type {
	case TypeSay, TypeCapability:
		if now == NeedsInput {
			return Working, true
		}
		return now, true
	case TypeReceipt:
		switch m.Status {
		case "rejected":
			return Failed, true
		case "canceled":
			return Canceled, true
		}
		return now, true
	}
	next, ok := ParseState(m.State)
	return next, ok && next != Submitted
}

func refuse(why fault.Reason, format string, args ...any) error {
	return fault.New(fault.Protocol, format, args...).Because(why)
}
