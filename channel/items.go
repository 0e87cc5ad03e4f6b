package channel

import (
	"fmt"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/message"
)

// A log is never translated: each adapter has its own envelopes. Every dialect can
// show any log as items, and can say a canonical message in any channel. A dialect
// has one writer, from an item to the form of its clients, and one reader, from the
// form of its clients to a canonical message. The rest is here:
//
//	to show a log      view.Items, which leaves out what the reader may not see
//	to follow one      hub.Follow with As, and ReaderOf for each event, live ones
//	                   too. A reader that is not an ItemFunc needs the whole log: after
//	                   a resume, read what comes before and show the rest
//	to say something   hub.Say, with the origin of the message
//	not to loop        hub.Onward is the origin of what is forwarded, and
//	                   hub.CameFrom reports what must not be sent back
//
// Adapters implement Items and Speaker; dialects call neither.

// Items is an adapter that reads its log as items. Without it each envelope is an
// item of the kind ItemOther, or of a kind that the hub writes.
type Items interface {
	// ItemReader returns a reader at the beginning of a channel's log.
	ItemReader(m *Metadata) ItemReader
}

// ItemReader reads the envelopes of one channel in order, including those that are
// only live. It is a fold: the same envelopes make the same items. It is used by one
// goroutine.
type ItemReader interface {
	// Read appends the items of an envelope to dst. It is total: every envelope makes
	// an item or is a part of a later one.
	Read(dst []Item, e *envelope.Envelope) []Item
}

// ItemFunc is a reader without state, so that it may begin anywhere in a log. Other
// readers begin at the start of the log.
type ItemFunc func(dst []Item, e *envelope.Envelope) []Item

// Read calls the function.
func (f ItemFunc) Read(dst []Item, e *envelope.Envelope) []Item { return f(dst, e) }

// ReaderOf returns an adapter's reader, or one that knows only the hub's envelopes.
func ReaderOf(a Adapter, m *Metadata) ItemReader {
	if own, ok := a.(Items); ok {
		return own.ItemReader(m)
	}
	return ItemFunc(ReadOther)
}

// Item is the content of an envelope in a form that belongs to no dialect. Which
// fields are set depends on the kind.
type Item struct {
	Kind ItemKind
	// Envelope is the envelope that the item was read from; for a message in pieces,
	// the one that finished the message. Its audience, cause, trace, priority and
	// origin are the item's. It must not be changed.
	Envelope *envelope.Envelope
	// Speaker is the id of the identity that speaks, works, asks, joins or leaves.
	Speaker string
	// Name is the speaker's name in the channel's dialect; empty: the registered
	// name.
	Name string
	// ID identifies what the item is about: a message in pieces, a call, work, a
	// request. Empty: the envelope's id identifies it.
	ID string
	// About is another channel in which the same speaker says the message as well:
	// an answer is expected there, and not here. Empty: none.
	About string
	// Message is the canonical form of a message, a call or a result. If its role is
	// empty, it depends on the reader: the reader's messages are the assistant's.
	Message *message.Envelope
	// Text is the readable part of every other kind: a delta, the subject of work or
	// of a request, a reason. It may be empty for ItemOther.
	Text string
	// State is the state of work, the result of a request, or what a turn did.
	State string
	// To is the id of the agent that a turn passes to.
	To string
	// At, of a delta, is how many bytes of the message came before; a delta at 0
	// starts the message again.
	At int
	// Replaces, of ItemOther, is the span of earlier messages that the messages of
	// the same envelope replace.
	Replaces *Span
}

// Span is a part of a channel's messages, counted from 0. To is the first message
// after it; -1: it extends to the end.
type Span struct{ From, To int }

// ItemKind is what an item is.
type ItemKind int

// Kinds of items.
const (
	// ItemOther has no equivalent in other dialects. Its name is the envelope's
	// type.
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

// States of a turn. A turn that is passed on has ended.
const (
	TurnStarted  = "started"
	TurnPassed   = "passed"
	TurnFinished = "finished"
)
