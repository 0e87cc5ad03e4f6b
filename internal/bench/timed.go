package bench

import (
	"context"
	"time"
)

// timedBatch is how many times the function runs between two readings of the clock.
const timedBatch = 64

// Timed returns how long one call takes, in microseconds.
func Timed(once func() error) Side {
	return func(ctx context.Context, d time.Duration) (Sample, error) {
		start, n := time.Now(), 0
		for {
			for range timedBatch {
				if err := once(); err != nil {
					return Sample{}, err
				}
			}
			n += timedBatch
			if elapsed := time.Since(start); elapsed >= d || ctx.Err() != nil {
				return Sample{Value: float64(elapsed.Nanoseconds()) / 1000 / float64(n)}, ctx.Err()
			}
		}
	}
}
