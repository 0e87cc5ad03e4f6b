package wire

import "github.com/parley-hub/parley/fault"

// Reason says why an envelope was rejected.
type Reason string

// The reasons of the protocol. NotFound, ConversationNotFound and Busy are
// accepted in receipts and never found by validation.
const (
	Malformed             Reason = "malformed"
	Expired               Reason = "expired"
	Duplicate             Reason = "duplicate"
	UnsupportedKind       Reason = "unsupported_kind"
	UnsupportedProfile    Reason = "unsupported_profile"
	VerificationFailed    Reason = "verification_failed"
	NotTarget             Reason = "not_target"
	WorkClosed            Reason = "work_closed"
	WorkContainerMismatch Reason = "work_container_mismatch"
	InvalidSurface        Reason = "invalid_surface"
	LegacyFieldRejected   Reason = "legacy_field_rejected"
	NotFound              Reason = "not_found"
	ConversationNotFound  Reason = "conversation_not_found"
	Busy                  Reason = "busy"
	Internal              Reason = "internal"
)

// Known reports whether a receipt may carry the reason.
func (r Reason) Known() bool {
	switch r {
	case Malformed, Expired, Duplicate, UnsupportedKind, UnsupportedProfile, VerificationFailed, NotTarget, WorkClosed,
		WorkContainerMismatch, InvalidSurface, LegacyFieldRejected, NotFound, ConversationNotFound, Busy, Internal:
		return true
	}
	return false
}

// Published is the word for a reason that AGH itself uses in receipts.
func (r Reason) Published() Reason {
	if r == InvalidSurface || r == LegacyFieldRejected {
		return Malformed
	}
	return r
}

// code is the hub's own word for a reason.
func (r Reason) code() fault.Code {
	switch r {
	case NotTarget, NotFound, ConversationNotFound:
		return fault.NotFound
	case Duplicate, WorkClosed, WorkContainerMismatch:
		return fault.Conflict
	case VerificationFailed, UnsupportedProfile:
		return fault.AuthFailed
	case Busy:
		return fault.Unavailable
	case Internal:
		return fault.Internal
	}
	return fault.Invalid
}

// Rejection is why an envelope is not accepted. It never repeats what a body
// or proof says.
type Rejection struct {
	Reason Reason
	Member string // the member at fault, such as "body.text"; empty: the whole text
	Detail string // what is wrong and what would be right

	// Answerable says that the fault is one that a runtime answers with an
	// automatic receipt, if the envelope is directed work.
	Answerable bool
}

func (r *Rejection) Error() string { return "agh: " + string(r.Reason) + ": " + r.Detail }

// Unwrap gives the rejection a code of the catalogue.
func (r *Rejection) Unwrap() error { return fault.New(r.Reason.code(), "%s", r.Detail) }

func malformed(member, detail string) *Rejection {
	return &Rejection{Reason: Malformed, Member: member, Detail: "`" + member + "` " + detail, Answerable: true}
}

// silent marks a rejection that no receipt answers.
func (r *Rejection) silent() *Rejection {
	r.Answerable = false
	return r
}
