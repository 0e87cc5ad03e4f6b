package channel

import (
	"fmt"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/message"
)

// A log is never translated: each adapter has its own envelopes. What every
// dialect can show of any log are items, and what every dialect can say in any
// channel is a canonical message. A dialect brings one writer, from an item to
// what its clients know, and one reader, from what its clients say to a canonical
// message. The rest is here:
//
//	to show a log      view.Items, which leaves out what the reader may not see
//	to follow one      hub.Follow with As, and ReaderOf for each event, live ones
//	                   too. A reader that is no ItemFunc begins where the log does:
//	                   after a resume, read what comes before and show the rest
//	to say something   hub.Say, with the origin under which it came in
//	not to loop        hub.Onward is the origin of what is sent on elsewhere, and
//	                   hub.CameFrom says what must not be sent back
//
// Adapters implement Items and Speaker; dialects call neither.

// Items is an adapter that reads its log as items. Without it each envelope is
// an item of the kind ItemOther, or one of the hub's own.
type Items interface {
	// ItemReader returns a reader at the beginning of a channel's log.
	ItemReader(m *Metadata) ItemReader
}

// ItemReader reads the envelopes of one channel in their order, those that are
// only shown live in their place. It is a fold: the same envelopes make the same
// items. It is used by one goroutine.
type ItemReader interface {
	// Read appends what an envelope says to dst. It is total: whatever a log holds
	// makes an item, or is a part of a later one.
	Read(dst []Item, e *envelope.Envelope) []Item
}

// ItemFunc is a reader that remembers nothing, so that it may begin anywhere in
// a log. Other readers begin where the log does.
type ItemFunc func(dst []Item, e *envelope.Envelope) []Item

// Read calls the function.
func (f ItemFunc) Read(dst []Item, e *envelope.Envelope) []Item { return f(dst, e) }

// ReaderOf returns an adapter's reader, or one that knows the hub's own
// envelopes only.
func ReaderOf(a Adapter, m *Metadata) ItemReader {
	if own, ok := a.(Items); ok {
		return own.ItemReader(m)
	}
	return ItemFunc(ReadOther)
}

// Item is what an envelope says, in no dialect's words. Which fields are set
// depends on the kind.
type Item struct {
	Kind ItemKind
	// Envelope is what the item was read from. For a message in pieces it is the
	// envelope that finished the message. Its audience, cause, trace, priority and
	// origin are the item's. It is not to be changed.
	Envelope *envelope.Envelope
	// Speaker is the id of the identity that speaks, works, asks, joins or leaves.
	Speaker string
	// Name is what the channel's own dialect calls the speaker; empty: nothing
	// else than its registered name.
	Name string
	// ID names what the item is about: a message in pieces, a call, work, a
	// request. It is empty where the envelope's id does.
	ID string
	// About is the channel in which a message is said as well, by the same speaker: there
	// it asks for an answer, and not here. Empty: it is said here only.
	About string
	// Message is the canonical form of a message, a call or a result. An empty
	// role is one that depends on who reads: the reader's own is the assistant's.
	Message *message.Envelope
	// Text is what there is to read of every other kind: a delta, what work or a
	// request is about, a reason. Of ItemOther it may be empty.
	Text string
	// State is where work is, how a request ended, or what a turn did.
	State string
	// To is the id of whom a turn passes to.
	To string
	// At, of a delta, is how many bytes of the message came before; a delta at 0
	// begins it anew.
	At int
	// Replaces, of ItemOther, are messages so far whose place is taken by those that
	// follow of the same envelope.
	Replaces *Span
}

// Span is a part of a channel's messages, counted from 0. To is the first that is
// not part of it; -1: it goes to the end.
type Span struct{ From, To int }

// ItemKind is what an item is.
type ItemKind int

// Kinds of items.
const (
	// ItemOther is something that other dialects have no word for. The envelope's
	// type is its name.
	ItemOther ItemKind = iota
	ItemMessage
	// ItemDelta is a piece of a message that is not finished.
	ItemDelta
	ItemToolCall
	ItemToolResult
	// ItemWork is a step of work, or of a task; State is one of the Work states.
	ItemWork
	ItemRequest
	ItemAnswer
	// ItemTurn says that a turn began, ended or was passed on; see the Turn states.
	ItemTurn
	// ItemExpectation is an expectation that was violated: Text is its name.
	ItemExpectation
	ItemJoined
	ItemLeft
	// ItemEnd is the end of the channel; Text is the reason.
	ItemEnd
)

var itemNames = [...]string{
	"other", "message", "delta", "tool_call", "tool_result", "work", "request", "answer", "turn", "expectation", "joined", "left", "end",
}

func (k ItemKind) String() string {
	if k < 0 || int(k) >= len(itemNames) {
		return fmt.Sprintf("item(%d)", int(k))
	}
	return itemNames[k]
}

// ItemKinds lists every kind.
func ItemKinds() []ItemKind {
	kinds := make([]ItemKind, len(itemNames))
	for i := range kinds {
		kinds[i] = ItemKind(i)
	}
	return kinds
}

// States of work.
const (
	WorkSubmitted  = "submitted"
	WorkWorking    = "working"
	WorkNeedsInput = "needs_input"
	WorkCompleted  = "completed"
	WorkFailed     = "failed"
	WorkCanceled   = "canceled"
	WorkExpired    = "expired"
)

// WorkEnded reports whether a state of work is its last.
func WorkEnded(state string) bool {
	switch state {
	case WorkCompleted, WorkFailed, WorkCanceled, WorkExpired:
		return true
	}
	return false
}

// States of a turn. One that is passed on ends.
const (
	TurnStarted  = "started"
	TurnPassed   = "passed"
	TurnFinished = "finished"
)
