package apibench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/bench"
)

// window is how far the sender may be ahead of the slowest follower: less than
// what the hub keeps for each.
const window = 192

// crowd counts what each of many followers has read.
type crowd struct {
	counts []atomic.Int64
	moved  chan struct{}
	read   sync.WaitGroup
	cancel context.CancelFunc
}

// gather lets n followers read a stream.
func gather(ctx context.Context, url string, n int) (*crowd, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &crowd{counts: make([]atomic.Int64, n), moved: make(chan struct{}, 1), cancel: cancel}
	for i := range n {
		body, err := stream(ctx, url)
		if err != nil {
			c.leave()
			return nil, err
		}
		c.read.Go(func() { c.count(i, body) })
	}
	return c, nil
}

func (c *crowd) count(i int, body io.ReadCloser) {
	defer body.Close()
	buf := make([]byte, 64<<10)
	tail := byte(0)
	for {
		n, err := body.Read(buf)
		if got := events(buf[:n], &tail); got > 0 {
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

func (c *crowd) leave() {
	c.cancel()
	c.read.Wait()
}

// slowest is how much everyone has read.
func (c *crowd) slowest() int64 {
	least := c.counts[0].Load()
	for i := range c.counts {
		least = min(least, c.counts[i].Load())
	}
	return least
}

// await waits until everyone has read n events.
func (c *crowd) await(ctx context.Context, n int64) error {
	for c.slowest() < n {
		select {
		case <-c.moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// fanOut compares one sender's reach through the hub with a loop that writes
// and flushes every event to every follower.
func fanOut(ctx context.Context, o Options, s *site) (_ bench.Figure, err error) {
	head, err := s.hub.Position(ctx, s.channel)
	if err != nil {
		return bench.Figure{}, err
	}
	ours, err := gather(ctx, s.http.url+"/v1/channels/"+s.channel+"/events?after="+head.String(), o.Followers)
	if err != nil {
		return bench.Figure{}, err
	}
	defer ours.leave()
	loop := &flushing{}
	server, err := listen(ctx, loop)
	if err != nil {
		return bench.Figure{}, err
	}
	defer server.close()
	theirs, err := gather(ctx, server.url, o.Followers)
	if err != nil {
		return bench.Figure{}, err
	}
	defer theirs.leave()
	defer loop.end()
	frame := fmt.Appendf(nil, "id: 1.1.1\nevent: envelope\ndata: {\"padding\":%q,\"event_data\":%s}\n\n", fmt.Sprintf("%0360d", 0), text)

	return bench.Contest{
		Name: fmt.Sprintf("fan-out 1 to %d over SSE", o.Followers), Unit: "deliveries/s", Better: bench.Higher, Target: ptr(3),
		Ours: func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			return spread(ctx, d, ours, func(n int64) error { return s.publish(ctx, n) })
		},
		Floor: func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			return spread(ctx, d, theirs, func(n int64) error { return loop.publish(n, frame) })
		},
	}.Run(ctx, o.Plan)
}

// spread publishes in portions for a while, never too far ahead, and counts
// deliveries until the last has arrived.
func spread(ctx context.Context, d time.Duration, c *crowd, publish func(n int64) error) (bench.Sample, error) {
	const portion = window / 3
	from := c.slowest()
	sent := from
	start := time.Now()
	for sent == from || time.Since(start) < d {
		if err := publish(portion); err != nil {
			return bench.Sample{}, err
		}
		sent += portion
		if err := c.await(ctx, sent-window+portion); err != nil {
			return bench.Sample{}, err
		}
	}
	if err := c.await(ctx, sent); err != nil {
		return bench.Sample{}, err
	}
	return bench.Sample{Value: float64((sent-from)*int64(len(c.counts))) / time.Since(start).Seconds()}, nil
}

// publish sends n envelopes and returns when the last is durable.
func (s *site) publish(ctx context.Context, n int64) error {
	var last *hub.Pending
	for range n {
		last = s.hub.Admit(ctx, &envelope.Envelope{Channel: s.channel, Sender: s.alice, Type: envelope.TypeText, Data: text}, nil)
	}
	_, err := last.Wait(ctx)
	return err
}

// flushing is the floor: a list of streams, each written and flushed for every
// event.
type flushing struct {
	mu      sync.Mutex
	streams []http.ResponseWriter
	done    chan struct{}
}

func (f *flushing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	f.mu.Lock() // who sees the stream begin is in the list when something is published
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // who is gone is noticed when written to
	if f.done == nil {
		f.done = make(chan struct{})
	}
	f.streams = append(f.streams, w)
	done := f.done
	f.mu.Unlock()
	select {
	case <-done:
	case <-r.Context().Done():
	}
}

func (f *flushing) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done != nil {
		close(f.done)
	}
}

func (f *flushing) publish(n int64, frame []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.streams) == 0 {
		return errors.New("nobody follows")
	}
	for range n {
		for _, w := range f.streams {
			if _, err := w.Write(frame); err != nil {
				return err
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}
