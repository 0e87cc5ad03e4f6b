package expect

import (
	"math"
	"time"
)

// Instant is a time in nanoseconds; 0 is none.
type Instant int64

// Never is later than every deadline.
const Never = Instant(math.MaxInt64)

// InstantOf returns the instant of a time; the zero time is none.
func InstantOf(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Instant(t.UnixNano())
}

// Time returns the instant in UTC.
func (i Instant) Time() time.Time { return time.Unix(0, int64(i)).UTC() }

// IsZero reports whether there is no instant.
func (i Instant) IsZero() bool { return i == 0 }

// Plus adds a duration; it stops at Never.
func (i Instant) Plus(d time.Duration) Instant {
	if d > 0 && i > Never-Instant(d) {
		return Never
	}
	return i + Instant(d)
}
