package channel

import (
	"time"

	"github.com/parley-hub/parley/envelope"
)

// Adapter governs the channels of one manifest. It is stateless code: all that
// a channel remembers is the State that the hub holds for it. Every method is
// pure: no clock, no I/O, no goroutine, and no mutation of its arguments.
type Adapter interface {
	// Manifest is constant; its type and version are the adapter's key.
	Manifest() Manifest
	// Opening says how a channel of this adapter becomes active.
	Opening() Opening
	// ValidateCreate and Initial refuse a channel before anything is stored.
	ValidateCreate(m *Metadata) error
	Initial(m *Metadata) (State, error)
	// ValidateSend checks an envelope against the state before its fold, in
	// constant time.
	ValidateSend(m *Metadata, s State, e *envelope.Envelope) error
	// Fold is total: every envelope of the log yields a state, whatever it
	// holds. An envelope that does not concern the adapter yields s itself.
	Fold(s State, e *envelope.Envelope) State
	// OnAccepted receives the state after the fold and returns what follows from
	// it, in the same batch.
	OnAccepted(m *Metadata, s State, e *envelope.Envelope) Effects
	// Expected returns who must speak next, if the adapter takes turns.
	Expected(m *Metadata, s State) (Turn, bool)
	// Recipients returns whom to notify, in order; Visible reports who may read. Both
	// receive the state and the members after e, or newer ones.
	Recipients(m *Metadata, s State, in Members, e *envelope.Envelope) []string
	Visible(m *Metadata, s State, in Members, e *envelope.Envelope, agent string) bool
	// Codec writes states for people and for snapshots.
	Codec() Codec
}

// State is one adapter's folded state of one channel: immutable, and small.
type State any

// Codec turns states into JSON and back. Version goes up whenever the same log
// would fold to another state.
type Codec struct {
	Version int
	Encode  func(State) ([]byte, error)
	Decode  func([]byte) (State, error)
}

// Opening is how a channel of an adapter becomes active.
type Opening int

const (
	// ByInvitation: every invitee must accept before the channel is active.
	ByInvitation Opening = iota
	// AtOnce: active as soon as it is stored, also with its first envelope.
	AtOnce
)

// Turn says who must speak next, and the envelope that it would answer; the
// trigger is empty before anyone has spoken.
type Turn struct {
	Agent   string
	Trigger string
}

// Effects are the consequences of an accepted envelope. They are in the same batch
// as the envelope.
type Effects struct {
	// Next, if set, moves the channel on, with Reason. Closing and Closed both
	// end it. Without a reason it is "adapter_ended".
	Next   Lifecycle
	Reason string
	// Append is written after the envelope, to the history or the side log.
	Append []Draft
	// Claims are names taken or given up in the channel's home, or in the channel
	// if it has none. One that is held already refuses the envelope. Claims and
	// index entries belong to the history, or to the side log if the batch has no
	// envelope of the history. Each log gives up and replaces only its own.
	Claims  []string
	Release []string
	// Index adds and removes entries under the adapter's prefix.
	Index   []IndexEntry
	Unindex []string
	// Audit is written to the audit, each with its kind, the channel's id and the
	// time.
	Audit []AuditRecord
	// Deadlines are due later; setting one replaces the one of the same name,
	// a zero time removes it.
	Deadlines []Deadline
}

// Draft is an envelope that an adapter appends; the hub adds its id and time.
type Draft struct {
	Envelope envelope.Envelope
	Where    Where
	// Index is added to the index with an envelope of the side log. The entries
	// then belong to that log.
	Index []IndexEntry
}

// Where says where an envelope goes.
type Where int

// Places of an envelope.
const (
	History Where = iota // part of the channel's history
	Side                 // kept with the channel, not part of its history
	Live                 // sent to current followers, and not stored
)

// AuditRecord is what an adapter wants audited. Its fields encode as JSON.
type AuditRecord struct {
	Kind   string
	Fields map[string]any
}

// IndexEntry is a key of an adapter with a small value.
type IndexEntry struct {
	Key   string // without a zero byte, at most 512 bytes
	Value []byte // at most 64 KiB
	// All also lists the entry among those of all homes of its kind. The entries of
	// channels without a home are in one list already.
	All bool
}

// Deadline requests a call at a time. An adapter that sets one implements Timed: the
// hub calls OnDeadline with the name at that time, unless the channel has ended.
type Deadline struct {
	Name string
	At   time.Time
}
