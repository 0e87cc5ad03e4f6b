package journal

import (
	"errors"
	"fmt"
)

// Errors that engines return, alone or wrapped.
var (
	// ErrClosed: the engine is closed, or was closed during the call.
	ErrClosed = errors.New("journal is closed")
	// ErrFailed: the engine's storage failed; it admits nothing more in this
	// process. What the call was about is read again after the next open.
	ErrFailed = errors.New("journal has failed and admits nothing more in this process")
	// ErrNoSpace: too little room is left on the disk. Nothing was ordered;
	// the same call may succeed later.
	ErrNoSpace = errors.New("journal refuses appends, the disk is nearly full")
	// ErrInvalid: the call can never succeed as it is.
	ErrInvalid = errors.New("invalid journal call")
	// ErrDamaged: stored bytes do not match their checksum, or are missing.
	ErrDamaged = errors.New("journal data is damaged")
)

// Retryable reports whether the same work, computed again from what is then
// durable, may succeed in this process or the next.
func Retryable(err error) bool {
	var outcome *OutcomeError
	var conflict *ConflictError
	var notMine *NotMineError
	return errors.As(err, &outcome) || errors.As(err, &notMine) || errors.As(err, &conflict) ||
		errors.Is(err, ErrNoSpace) || errors.Is(err, ErrFailed) || errors.Is(err, ErrClosed)
}

// NotMineError refuses a write because another node orders the shard. The same
// call may succeed there, or here later (Engine.Lead).
type NotMineError struct {
	Shard int
	Node  string // who orders it; "" when nobody is known to
}

func (e *NotMineError) Error() string {
	if e.Node == "" {
		return fmt.Sprintf("shard %d is not led by this node, and no other is known to lead it; try again", e.Shard)
	}
	return fmt.Sprintf("shard %d is led by node %q; ask there", e.Shard, e.Node)
}

// OutcomeError is the end of a ticket that did not end durable.
type OutcomeError struct {
	Outcome Outcome
	Offset  uint64
	Cause   error
}

func (e *OutcomeError) Error() string {
	s := fmt.Sprintf("batch at offset %d ended %v", e.Offset, e.Outcome)
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap returns what made the batch end so.
func (e *OutcomeError) Unwrap() error { return e.Cause }

// BoundsError refuses something too small or too large. It is ErrInvalid.
type BoundsError struct {
	What          string
	Got, Min, Max int
}

func (e *BoundsError) Error() string {
	return fmt.Sprintf("%s is %d, from %d to %d is accepted", e.What, e.Got, e.Min, e.Max)
}

// Is makes a BoundsError an ErrInvalid.
func (e *BoundsError) Is(target error) bool { return target == ErrInvalid }

// ConflictKind is what a batch conflicted with.
type ConflictKind uint8

// Kinds of conflict.
const (
	TermConflict     ConflictKind = iota + 1 // ordered work was forgotten since
	SequenceConflict                         // the log's last sequence is another
	ClaimConflict                            // a claim is held
	ValueConflict                            // the value's version is another
)

// String names the kind.
func (k ConflictKind) String() string {
	switch k {
	case TermConflict:
		return "term"
	case SequenceConflict:
		return "sequence"
	case ClaimConflict:
		return "claim"
	case ValueConflict:
		return "value"
	}
	return fmt.Sprintf("conflict(%d)", uint8(k))
}

// ConflictError refuses a batch that does not fit what is ordered.
type ConflictError struct {
	Kind     ConflictKind
	Log      LogName  // SequenceConflict: the log
	Value    ValueKey // ValueConflict: the value
	Claim    Claimed  // ClaimConflict: the claim and its holder
	Expected uint64   // term, sequence or version that the batch expected
	Actual   uint64   // the one that is ordered
	// LostTo is the ticket of the batch that made it so, never nil. While it
	// is pending the refusal is not final: if it ends otherwise than durable,
	// the same batch may be accepted. It is durable when nothing is on its way.
	LostTo *Ticket
}

func (e *ConflictError) Error() string {
	switch e.Kind {
	case TermConflict:
		return fmt.Sprintf("batch was computed in term %d, the shard is in term %d", e.Expected, e.Actual)
	case SequenceConflict:
		return fmt.Sprintf("log %v is at sequence %d, the batch expected %d", e.Log, e.Actual, e.Expected)
	case ClaimConflict:
		return fmt.Sprintf("claim %q is held by record %d of log %v", e.Claim.Name, e.Claim.Seq, e.Claim.Log)
	case ValueConflict:
		return fmt.Sprintf("value %q of %v is at version %d, the batch expected %d",
			e.Value.Name, e.Value.Partition, e.Actual, e.Expected)
	}
	return "batch conflicts with what is ordered"
}

// GapReason is why a position does not exist.
type GapReason uint8

// Reasons for a gap.
const (
	EpochChanged GapReason = iota + 1 // restored, salvaged, or cut by a crash
	LogDropped                        // the log was dropped, and perhaps created anew
	NeverWritten                      // beyond what is durable
)

// String names the reason.
func (r GapReason) String() string {
	switch r {
	case EpochChanged:
		return "the epoch has changed"
	case LogDropped:
		return "the log was dropped"
	case NeverWritten:
		return "it is beyond the end"
	}
	return fmt.Sprintf("gap(%d)", uint8(r))
}

// GapError answers a position that does not exist, of a log (Log is set) or of
// a shard.
type GapError struct {
	Reason    GapReason
	Log       LogName
	Want      Position // the position asked for
	Head      Position // where the log ends now; zero when there is none
	Shard     int
	WantShard ShardPosition // the position asked for
	HeadShard ShardPosition // where the shard ends now
}

func (e *GapError) Error() string {
	if e.Log != (LogName{}) {
		return fmt.Sprintf("position %v of log %v does not exist: %v; the log ends at %v", e.Want, e.Log, e.Reason, e.Head)
	}
	return fmt.Sprintf("position %v of shard %d does not exist: %v; the shard ends at %v", e.WantShard, e.Shard, e.Reason, e.HeadShard)
}

// DamageError names what is damaged. It is ErrDamaged.
type DamageError struct {
	What string // the record, table or file
	Err  error
}

func (e *DamageError) Error() string {
	if e.Err == nil {
		return e.What + " is damaged"
	}
	return fmt.Sprintf("%s is damaged: %v", e.What, e.Err)
}

// Unwrap returns what was found.
func (e *DamageError) Unwrap() error { return e.Err }

// Is makes a DamageError an ErrDamaged.
func (e *DamageError) Is(target error) bool { return target == ErrDamaged }
