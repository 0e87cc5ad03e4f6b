package identity

import (
	"math"
	"time"
)

// Bucket is a token bucket for one sender. It is a plain value without a
// clock; its zero value allows everything.
type Bucket struct {
	every time.Duration // how long one token takes to come back
	depth time.Duration // how long a full bucket takes
	full  time.Time     // when it is full again
}

// NewBucket makes a full bucket for a rate. A rate without PerMinute is no limit.
func NewBucket(rate Rate) Bucket {
	if rate.PerMinute <= 0 {
		return Bucket{}
	}
	every := max(time.Minute/time.Duration(rate.PerMinute), 1)
	tokens := rate.Burst
	if tokens <= 0 {
		tokens = rate.PerMinute
	}
	depth := time.Duration(math.MaxInt64 / 2)
	if tokens < int64(depth/every) {
		depth = time.Duration(tokens) * every
	}
	return Bucket{every: every, depth: depth}
}

// Take takes a token if there is one, and otherwise says how long until then.
func (b *Bucket) Take(now time.Time) (ok bool, wait time.Duration) {
	if b.every == 0 {
		return true, 0
	}
	full := b.full
	if full.Before(now) {
		full = now
	}
	full = full.Add(b.every)
	if wait := full.Sub(now) - b.depth; wait > 0 {
		return false, wait
	}
	b.full = full
	return true, 0
}
