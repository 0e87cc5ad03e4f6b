// Package fault is the one catalogue of errors that Parley answers with. Every
// refusal carries a code from it; each dialect translates codes once, at its
// edge. It never logs and never formats for a wire.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Code names a kind of refusal. Codes are stable: clients match on them.
type Code string

// Codes of the catalogue.
const (
	NotFound     Code = "not_found"
	AccessDenied Code = "access_denied"
	Protocol     Code = "protocol_error"
	AuthFailed   Code = "auth_failed"
	InboxFull    Code = "inbox_full"
	RateLimited  Code = "rate_limited"
	Invalid      Code = "invalid"
	TooLarge     Code = "too_large"
	Conflict     Code = "conflict"
	Gap          Code = "gap"
	SlowReader   Code = "slow_reader"
	Unavailable  Code = "unavailable"
	Internal     Code = "internal"
)

// Entry describes a code for people and for the generated docs page.
type Entry struct {
	Code      Code
	Meaning   string
	Remedy    string
	Retryable bool
}

// Catalogue lists every code once, in the order of the docs page.
func Catalogue() []Entry {
	return []Entry{
		{NotFound, "The agent, channel, task or adapter that was named does not exist.", "Check the name or id; list what exists.", false},
		{AccessDenied, "A rule, a role or the arbiter does not allow this.", "Act as an identity that may, or ask an operator to change the rule.", false},
		{Protocol, "The channel's adapter or lifecycle does not allow this step now.", "Read the message: it names whose turn it is, or the state that stands in the way.", false},
		{AuthFailed, "The credentials do not prove the identity.", "Send the scheme and token that the identity was registered with.", false},
		{InboxFull, "A recipient has too many unanswered envelopes.", "Send again when the recipient has caught up, or raise limits.inbox.max_pending in its rule.", true},
		{RateLimited, "The sender posts faster than its rule allows.", "Wait as long as the message says.", true},
		{Invalid, "The input is malformed: wrong syntax, type, value or encoding.", "Correct what the message names.", false},
		{TooLarge, "A frame, payload or list is over its limit.", "Send less at once, or raise the limit's config key.", false},
		{Conflict, "The same key or name is taken with other content, or something changed meanwhile.", "Read the current state and decide again.", false},
		{Gap, "The position asked for no longer exists.", "Start again from the position in the answer.", false},
		{SlowReader, "A reader fell behind its bounded queue and was cut off.", "Reconnect and resume from the last position.", true},
		{Unavailable, "The hub cannot store or serve this at the moment.", "Try again; if it stays, look at /readyz and the log.", true},
		{Internal, "A fault inside the hub.", "Report it with the log line that has the same time.", false},
	}
}

// Error is a refusal: what was refused, why, and what would be accepted.
type Error struct {
	Code       Code
	Reason     Reason            // why exactly, where code decides by it
	Details    map[string]string // what belongs to the reason
	Message    string            // for people
	RetryAfter time.Duration     // zero where no wait is known
	Err        error             // the cause, if any
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an Error of the same code without a message of
// its own, so that errors.Is(err, fault.New(code, "")) matches by code.
func (e *Error) Is(target error) bool {
	var other *Error
	return errors.As(target, &other) && other.Message == "" && other.Code == e.Code
}

// New makes a refusal.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes a refusal that keeps its cause.
func Wrap(code Code, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: cause}
}

// CodeOf returns the code an error carries; an error without one is Internal,
// and nil has none.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if f, ok := errors.AsType[*Error](err); ok {
		return f.Code
	}
	return Internal
}

// IgnoreNotFound returns nil if err has the code NotFound, and err otherwise.
func IgnoreNotFound(err error) error {
	if CodeOf(err) == NotFound {
		return nil
	}
	return err
}

// Retryable reports whether the same request may succeed later unchanged.
func Retryable(err error) bool {
	code := CodeOf(err)
	for _, entry := range Catalogue() {
		if entry.Code == code {
			return entry.Retryable
		}
	}
	return false
}
