package wire

import (
	"slices"
	"strings"
	"time"

	"github.com/parley-hub/parley/fault"
)

// The codes that AG2's client knows. Every other code is "error".
const (
	codeNotFound     = "not_found"
	codeAccessDenied = "access_denied"
	codeProtocol     = "protocol_error"
	codeAuthFailed   = "auth_failed"
	codeOther        = "error"
)

// meaning maps a refusal's message to a reason.
type meaning struct {
	code      string
	fragments []string // all must be in the message, in any order
	means     fault.Code
	reason    fault.Reason
}

// meanings is the only place where messages of AG2's wire are matched. AG2's
// refusals have no field for a reason, so their words are part of the protocol. The
// first match is used.
var meanings = []meaning{
	{code: codeProtocol, fragments: []string{"expects", "to speak"}, means: fault.Protocol, reason: fault.OutOfTurn},
	{code: codeProtocol, fragments: []string{"expects first send"}, means: fault.Protocol, reason: fault.OutOfTurn},
	{code: codeProtocol, fragments: []string{"expects reply"}, means: fault.Protocol, reason: fault.OutOfTurn},
	{code: codeProtocol, fragments: []string{"already registered"}, means: fault.Protocol, reason: fault.NameTaken},
	{code: codeProtocol, fragments: []string{" is closed"}, means: fault.Protocol, reason: fault.ChannelEnded},
	{code: codeProtocol, fragments: []string{" is expired"}, means: fault.Protocol, reason: fault.ChannelEnded},
	{code: codeNotFound, fragments: []string{"channel not found"}, means: fault.NotFound, reason: fault.NoChannel},
	{code: codeNotFound, fragments: []string{"task not found"}, means: fault.NotFound, reason: fault.NoTask},
	{code: codeNotFound, fragments: []string{"agent '", "not found"}, means: fault.NotFound, reason: fault.NoAgent},
	{code: codeAuthFailed, fragments: []string{"api_key"}, means: fault.AuthFailed, reason: fault.NeedsAPIKey},
	{code: codeAccessDenied, fragments: []string{rateLimited}, means: fault.RateLimited},
	{code: codeOther, fragments: []string{"inbox at capacity"}, means: fault.InboxFull},
}

func (m *meaning) matches(code, message string) bool {
	return m.code == code && !slices.ContainsFunc(m.fragments, func(s string) bool { return !strings.Contains(message, s) })
}

// rateLimited precedes the time that a hub of ours asks a sender to wait; AG2 has
// no code for it.
const rateLimited = "limits.rate; wait "

func rateWait(message string) time.Duration {
	_, rest, _ := strings.Cut(message, rateLimited)
	wait, err := time.ParseDuration(rest)
	if err != nil {
		return 0
	}
	return wait
}

// codes maps AG2's codes to the codes of the catalogue.
var codes = map[string]fault.Code{
	codeNotFound:     fault.NotFound,
	codeAccessDenied: fault.AccessDenied,
	codeProtocol:     fault.Protocol,
	codeAuthFailed:   fault.AuthFailed,
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
// its code and words allow.
func ErrorOf(code, message string) error {
	known, ok := codes[code]
	if !ok {
		code, known = codeOther, fault.Internal
	}
	err := fault.New(known, "%s", message)
	for i := range meanings {
		if m := &meanings[i]; m.matches(code, message) {
			err.Code, err.Reason = m.means, m.reason
			break
		}
	}
	if err.Code == fault.RateLimited {
		err.RetryAfter = rateWait(message)
	}
	return err
}
