package wire

import (
	"strings"
	"time"

	"github.com/parley-hub/parley/fault"
)

// The codes that AG2's client knows. Everything else is "error".
const (
	codeNotFound     = "not_found"
	codeAccessDenied = "access_denied"
	codeProtocol     = "protocol_error"
	codeAuthFailed   = "auth_failed"
	codeOther        = "error"
)

// inboxFull is how AG2's client tells a full inbox from other errors.
const inboxFull = "inbox at capacity"

// rateWait reads how long a hub of ours asks a sender to wait; AG2 has no code
// for it.
func rateWait(message string) (time.Duration, bool) {
	_, rest, ok := strings.Cut(message, "limits.rate; wait ")
	if !ok {
		return 0, false
	}
	wait, err := time.ParseDuration(rest)
	return wait, err == nil
}

// CodeOf translates an error of the catalogue to AG2's codes.
func CodeOf(err error) string {
	switch fault.CodeOf(err) {
	case fault.NotFound:
		return codeNotFound
	case fault.AccessDenied, fault.RateLimited:
		return codeAccessDenied
	case fault.Protocol, fault.Conflict:
		return codeProtocol
	case fault.AuthFailed:
		return codeAuthFailed
	}
	return codeOther
}

// ErrorOf translates a refusal on the wire back to the catalogue, as well as
// its code allows.
func ErrorOf(code, message string) error {
	switch code {
	case codeNotFound:
		return fault.New(fault.NotFound, "%s", message)
	case codeAccessDenied:
		if wait, ok := rateWait(message); ok {
			return &fault.Error{Code: fault.RateLimited, Message: message, RetryAfter: wait}
		}
		return fault.New(fault.AccessDenied, "%s", message)
	case codeProtocol:
		return fault.New(fault.Protocol, "%s", message)
	case codeAuthFailed:
		return fault.New(fault.AuthFailed, "%s", message)
	}
	if strings.Contains(message, inboxFull) {
		return fault.New(fault.InboxFull, "%s", message)
	}
	return fault.New(fault.Internal, "%s", message)
}
