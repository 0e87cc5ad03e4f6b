package streams

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/internal/bench"
)

// Window is how far the sender may be ahead of the slowest follower: less than
// what the hub keeps for each.
const Window = 192

// Crowd counts what each of many followers has read.
type Crowd struct {
	counts []atomic.Int64
	moved  chan struct{}
	read   sync.WaitGroup
	cancel context.CancelFunc
}

// Gather lets n followers read a stream.
func Gather(ctx context.Context, url string, n int) (*Crowd, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &Crowd{counts: make([]atomic.Int64, n), moved: make(chan struct{}, 1), cancel: cancel}
	for i := range n {
		body, err := Open(ctx, url)
		if err != nil {
			c.Leave()
			return nil, err
		}
		c.read.Go(func() { c.count(i, body) })
	}
	return c, nil
}

func (c *Crowd) count(i int, body io.ReadCloser) {
	defer body.Close()
	buf := make([]byte, 64<<10)
	tail := byte(0)
	for {
		n, err := body.Read(buf)
		if got := Count(buf[:n], &tail); got > 0 {
			c.counts[i].Add(int64(got))
			select {
			case c.moved <- struct{}{}:
			default:
			}
		}
		if err != nil {
			return
		}
	}
}

// Leave ends the readers.
func (c *Crowd) Leave() {
	c.cancel()
	c.read.Wait()
}

// slowest returns how many events every follower has read.
func (c *Crowd) slowest() int64 {
	least := c.counts[0].Load()
	for i := range c.counts {
		least = min(least, c.counts[i].Load())
	}
	return least
}

// Await waits until everyone has read n events.
func (c *Crowd) Await(ctx context.Context, n int64) error {
	for c.slowest() < n {
		select {
		case <-c.moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Spread publishes in portions for a while, never too far ahead, and counts
// deliveries until the last has arrived.
func Spread(ctx context.Context, d time.Duration, c *Crowd, publish func(n int64) error) (bench.Sample, error) {
	const portion = Window / 3
	from := c.slowest()
	sent := from
	start := time.Now()
	for sent == from || time.Since(start) < d {
		if err := publish(portion); err != nil {
			return bench.Sample{}, err
		}
		sent += portion
		if err := c.Await(ctx, sent-Window+portion); err != nil {
			return bench.Sample{}, err
		}
	}
	if err := c.Await(ctx, sent); err != nil {
		return bench.Sample{}, err
	}
	return bench.Sample{Value: float64((sent-from)*int64(len(c.counts))) / time.Since(start).Seconds()}, nil
}
