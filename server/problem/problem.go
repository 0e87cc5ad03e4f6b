// Package problem answers HTTP requests with problem+json (RFC 9457), whose
// codes are those of the one catalogue. It never decides what is refused.
package problem

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/parley-hub/parley/fault"
)

// ContentType of every answer this package writes.
const ContentType = "application/problem+json"

// Problem is the body of a refusal.
type Problem struct {
	Type   string     `json:"type"`
	Title  string     `json:"title"`
	Status int        `json:"status"`
	Code   fault.Code `json:"code"`
	Detail string     `json:"detail"`
	// Reason and Details say more exactly why, for code that decides by it.
	Reason  fault.Reason      `json:"reason,omitempty"`
	Details map[string]string `json:"details,omitempty"`
	// Position is where to start again, if the given position is gone.
	Position string `json:"position,omitempty"`
	// Request is the request that is not open any more, as it ended.
	Request any `json:"request,omitempty"`
}

// Placed is an error with a position to start again from.
type Placed interface {
	error
	Restart() string
}

// Carrying is an error that carries the request it is about.
type Carrying interface {
	error
	Carries() any
}

var statuses = map[fault.Code]int{
	fault.NotFound:     http.StatusNotFound,
	fault.AccessDenied: http.StatusForbidden,
	fault.Protocol:     http.StatusConflict,
	fault.AuthFailed:   http.StatusUnauthorized,
	fault.InboxFull:    http.StatusTooManyRequests,
	fault.RateLimited:  http.StatusTooManyRequests,
	fault.Invalid:      http.StatusBadRequest,
	fault.TooLarge:     http.StatusRequestEntityTooLarge,
	fault.Conflict:     http.StatusConflict,
	fault.Gap:          http.StatusGone,
	fault.SlowReader:   http.StatusServiceUnavailable,
	fault.Unavailable:  http.StatusServiceUnavailable,
	fault.Internal:     http.StatusInternalServerError,
}

// Status returns the HTTP status of a code.
func Status(code fault.Code) int {
	if status, ok := statuses[code]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// Of describes an error. The text of an error without a code is only logged:
// it may say more than a client should know.
func Of(err error) Problem {
	code := fault.CodeOf(err)
	status := statusOf(err)
	detail := err.Error()
	var refusal *fault.Error
	if !errors.As(err, &refusal) {
		detail = "the hub could not do this; its log says why"
	}
	p := Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
	p.Reason, p.Details = fault.ReasonOf(err), fault.DetailsOf(err)
	if gap, ok := errors.AsType[Placed](err); ok {
		p.Position = gap.Restart()
	}
	if about, ok := errors.AsType[Carrying](err); ok {
		p.Request = about.Carries()
	}
	return p
}

// Write answers a request with an error.
func Write(w http.ResponseWriter, err error) { WriteStatus(w, statusOf(err), err) }

// statusOf returns the status of an error's code, or of its reason if HTTP has one.
func statusOf(err error) int {
	if fault.ReasonOf(err) == fault.RequestExpired {
		return http.StatusGone
	}
	return Status(fault.CodeOf(err))
}

// WriteStatus is Write with a status that HTTP itself has for the error.
func WriteStatus(w http.ResponseWriter, status int, err error) {
	p := Of(err)
	p.Status, p.Title = status, http.StatusText(status)
	header := w.Header()
	header.Set("Content-Type", ContentType)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	if p.Status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Bearer realm="parley"`)
	}
	if refusal, ok := errors.AsType[*fault.Error](err); ok && refusal.RetryAfter > 0 {
		header.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(refusal.RetryAfter.Seconds())), 10))
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may have disconnected; there is nobody else to tell
}
