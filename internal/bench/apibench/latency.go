package apibench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/streams"
)

// latency compares the way from a sender to a follower with an echo of the same
// bytes over HTTP, then a sync of them to disk.
func latency(ctx context.Context, o Options, s *site) (_ bench.Figure, err error) {
	echo, err := streams.NewEcho(ctx, o.Dir)
	if err != nil {
		return bench.Figure{}, err
	}
	defer func() { err = errors.Join(err, echo.Close()) }()

	following, cancel := context.WithCancel(ctx)
	defer cancel()
	url, err := s.unfiltered(ctx)
	if err != nil {
		return bench.Figure{}, err
	}
	arrived, err := arrivals(following, url)
	if err != nil {
		return bench.Figure{}, err
	}
	ours := func(ctx context.Context, d time.Duration) (bench.Sample, error) { return s.reach(ctx, d, arrived) }
	return bench.Contest{
		Name: "publish to SSE follower, p50", Unit: "µs", Better: bench.Lower, Target: new(1.5), Ours: ours, Floor: echo.Floor(s.body(), true),
	}.Run(ctx, o.Plan)
}

// body returns a post over HTTP.
func (s *site) body() []byte {
	return fmt.Appendf(nil, `{"sender":%q,"event_type":"ag2.msg.text","event_data":%s}`, s.alice, text)
}

// reach posts until the time is over and reports how long the posts took to arrive.
func (s *site) reach(ctx context.Context, d time.Duration, arrived <-chan time.Time) (bench.Sample, error) {
	at, body := s.http.URL+"/v1/channels/"+s.channel+"/events", s.body()
	return streams.Timed(d, func() (time.Duration, error) {
		start := time.Now()
		if err := streams.Post(ctx, at, body, http.StatusCreated); err != nil {
			return 0, err
		}
		select {
		case when := <-arrived: // often before the sender is answered
			return when.Sub(start), nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
}

// arrivals reports when each event of a stream arrives.
func arrivals(ctx context.Context, url string) (<-chan time.Time, error) {
	body, err := streams.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	arrived := make(chan time.Time, 1024)
	go func() {
		defer body.Close()
		buf := make([]byte, 64<<10)
		tail := byte(0)
		for {
			n, err := body.Read(buf)
			for range streams.Count(buf[:n], &tail) {
				arrived <- time.Now()
			}
			if err != nil {
				return
			}
		}
	}()
	return arrived, nil
}
