package runner

import (
	"errors"
	"math/rand/v2"
	"time"
)

// Retry says how often and how long a request is tried again.
type Retry struct {
	// Attempts is how often a request is made at most; 0 is 5.
	Attempts int
	// First is the wait before the second attempt; each wait is twice the one before,
	// and is shortened by a random part. 0 is 1 s.
	First time.Duration
	// Longest bounds a wait. A provider that asks for a longer one is not asked
	// again. 0 is 1 minute.
	Longest time.Duration
}

func (r Retry) withDefaults() Retry {
	if r.Attempts <= 0 {
		r.Attempts = 5
	}
	if r.First <= 0 {
		r.First = time.Second
	}
	if r.Longest <= 0 {
		r.Longest = time.Minute
	}
	return r
}

// wait returns how long to wait after a failed attempt, counted from 1; false
// if it is not to be tried again.
func (r Retry) wait(attempt int, err error) (time.Duration, bool) {
	var failed *SendError
	if attempt >= r.Attempts || !errors.As(err, &failed) || !failed.Retryable {
		return 0, false
	}
	if failed.RetryAfter > 0 {
		return failed.RetryAfter, failed.RetryAfter <= r.Longest
	}
	d := r.First
	for range attempt - 1 {
		d = min(2*d, r.Longest)
	}
	d = min(d, r.Longest)
	return d/2 + rand.N(d/2+1), true
}
