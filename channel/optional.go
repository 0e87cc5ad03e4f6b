package channel

import (
	"time"

	"github.com/parley-hub/parley/envelope"
)

// Interfaces that an adapter may implement besides Adapter. The hub, views and agents
// find them by type assertion; the last column says what happens without one.
//
//	Interface     The adapter                                 Without it
//	Supervised    lets some agents speak out of turn          nobody does
//	Renderer      shows an envelope as text                   the type's own text
//	Timed         sets deadlines and acts when they are due   deadlines pass
//	SideFolder    folds envelopes beside the history          none are admitted
//	Advisor       warns about a channel that it opens         no warnings
//	Pausing       stops the clock of the expected speaker     it always runs
//	DialectOnly   is opened by one dialect                    every dialect opens it
//	TurnCounter   counts the turns that were taken            a channel has no such count
//	Private       is shown to members and operators only      readers' keys see it too
//	MemberFolder  folds who belongs to a channel              its participants, or Metadata.MembersOf
//	Admitter      lets others than members speak              only members speak
//	Items         reads its log as items                      only the hub's own are known
//	Speaker       takes messages from other dialects          only its own dialect speaks
//	Worker        has its own form for steps of work          it holds task events, or none
//	MemberNamer   knows its members by names of its own       they have their registered names
//	MessageNamer  has ids of its own for its messages         those of the envelopes
//	KeyScope      counts idempotency keys in its home         each channel and sender counts its own
//	Part          opens parts of another channel              a channel stands alone
//	KnobNamer     has knobs that name agents                  its knobs take ids only
//
// adapter/turn.Driver is one more: how an agent takes a turn. It is not here,
// because it needs views.

// Supervised is an adapter that lets some agents speak out of turn: what a
// supervisor says is not a turn and does not change whose turn it is.
type Supervised interface {
	Supervisor(m *Metadata, s State, agent string) bool
}

// Renderer shows an envelope as text to people and models. It returns false for an
// envelope that has no text, which differs from an empty one.
type Renderer interface {
	Render(e *envelope.Envelope) (string, bool)
}

// Timed is an adapter that sets deadlines. The hub calls OnDeadline for each that
// comes due before the channel ends.
type Timed interface {
	OnDeadline(m *Metadata, s State, name string, at time.Time) Effects
}

// SideFolder is an adapter that takes envelopes into the side log and folds them.
// Side envelopes have no sequence of their own: each carries that of the last
// envelope of the history before it. Both logs fold in the order in which they
// were written; within one batch the history folds first.
type SideFolder interface {
	// ValidateSide checks an envelope for the side log, as ValidateSend does for the
	// history. OnAccepted is called for it, too.
	ValidateSide(m *Metadata, s State, e *envelope.Envelope) error
	// FoldSide is total, as Fold is.
	FoldSide(s State, e *envelope.Envelope) State
}

// Advisor is an adapter that may open a channel with warnings.
type Advisor interface {
	Advise(m *Metadata) []string
}

// Pausing is an adapter whose channels may wait for somebody other than the
// expected speaker, for example for a permission.
type Pausing interface {
	// Paused is how much of the time since the expected speaker's turn began
	// does not count against it.
	Paused(m *Metadata, s State, now time.Time) time.Duration
}

// DialectOnly is an adapter whose channels are opened by one dialect, and whose
// envelopes no other shows as they are: other dialects show their items.
type DialectOnly interface {
	Dialect() string
}

// MemberFolder is an adapter that folds who belongs to a channel. Without it
// the participants of the creation belong, or the members of the channel that
// Metadata.MembersOf names.
type MemberFolder interface {
	Members(m *Metadata, s State) Members
}

// Admitter is an adapter that accepts envelopes from agents that are not members.
// Without it only members and the expected speaker post.
type Admitter interface {
	Admits(m *Metadata, s State, in Members, sender string) bool
}

// KeyScope is an adapter whose idempotency keys, if HomeKeys returns true, are unique
// in the whole home, for all senders and contents, until their channel is deleted.
// Other keys are unique for one sender in one channel, for a time.
type KeyScope interface {
	HomeKeys() bool
}

// TurnCounter is an adapter that counts turns. Most is 0 where there is no cap.
type TurnCounter interface {
	TurnCount(m *Metadata, s State) (taken, most int, ok bool)
}

// Private is an adapter whose channels are shown to their members and to
// operators only: a reader's key does not see them.
type Private interface {
	Private() bool
}

// Part is an adapter whose channels are part of another channel of their home,
// identified by type and name. They can be opened only while it exists and has not
// ended, and are deleted with it.
type Part interface {
	// WholeType is the type of that other channel.
	WholeType() string
	// WholeName is its name.
	WholeName(m *Metadata) string
}

// KnobNamer is an adapter whose knobs name agents.
type KnobNamer interface {
	// NameKnobs returns the knobs with id(name) in place of every agent that they
	// name. Knobs that the adapter refuses, or that it would not change, are
	// returned as they are.
	NameKnobs(knobs []byte, id func(name string) string) []byte
}
