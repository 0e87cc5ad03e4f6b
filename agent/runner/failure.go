package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/message/provider"
)

// Refused returns the failure of a request that was answered with a status.
func Refused(name string, status int, header http.Header, code, text string, cause error) *SendError {
	if text == "" {
		text = http.StatusText(status)
	}
	return &SendError{
		Failure: provider.Failure{Provider: name, Code: code, Message: text, Retryable: retryable(status, code)},
		Status:  status, RetryAfter: RetryAfter(header, time.Now()), Cause: cause,
	}
}

// Broken returns the failure of a request without a whole answer: no
// connection, or a stream that ended early.
func Broken(name string, cause error) *SendError {
	var final *finalError
	return &SendError{
		Failure: provider.Failure{Provider: name, Message: cause.Error(), Retryable: !errors.As(cause, &final) && !errors.Is(cause, provider.ErrReplySize)},
		Cause:   cause,
	}
}

// Finished checks a reply that has ended. Send returns its results.
func Finished(ctx context.Context, name string, reply provider.Reply, err error) (provider.Reply, error) {
	var known *SendError
	switch {
	case err != nil && ctx.Err() != nil:
		return reply, ctx.Err()
	case errors.As(err, &known):
		return reply, known
	case err != nil:
		return reply, Broken(name, err)
	case reply.Failure != nil:
		return reply, &SendError{Failure: *reply.Failure}
	case reply.Finish == provider.FinishNone:
		return reply, Broken(name, errors.New("the stream ended before the model had stopped"))
	}
	return reply, nil
}

// retryable reports whether the same request may succeed later.
func retryable(status int, code string) bool {
	switch status {
	case http.StatusTooManyRequests:
		return code != "insufficient_quota"
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly:
		return true
	}
	return status >= 500 && status != http.StatusNotImplemented
}

// RetryAfter reads how long an answer asks to wait; 0 if it does not.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return seconds(ms / 1000)
	}
	text := header.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s > 0 {
		return seconds(s)
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// seconds returns a duration of at most a day, which is past every limit here.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 24*60*60) * float64(time.Second))
}

// explain turns a failure into an error of the catalogue, without the key.
func explain(err error, secret Secret) error {
	var failed *SendError
	if !errors.As(err, &failed) {
		return err
	}
	code, remedy := fault.Unavailable, "try again later"
	switch {
	case failed.Status == http.StatusUnauthorized || failed.Status == http.StatusForbidden:
		code, remedy = fault.AuthFailed, "check the provider's key, and what it may use"
	case failed.Status == http.StatusTooManyRequests:
		code, remedy = fault.RateLimited, "ask less often, or raise the provider's limit"
	case failed.Status == http.StatusNotFound:
		code, remedy = fault.NotFound, "check the model's name and the base URL"
	case !failed.Retryable && failed.Status >= 300 && failed.Status < 500:
		code, remedy = fault.Invalid, "check the model, its parameters and its tools"
	}
	text := bounded(secret.Scrub(failed.Failure.Error())) // in this order: a key that is cut is not found
	if failed.Status > 0 {
		text += fmt.Sprintf(" (HTTP %d)", failed.Status)
	}
	// The cause is left out: its text is the provider's, and may hold the key.
	return fault.New(code, "%s; %s", text, remedy)
}

// bounded keeps an error's text to a size that fits in a log line.
func bounded(text string) string {
	const limit = 1024
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
