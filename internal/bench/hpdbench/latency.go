package hpdbench

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	dialect "github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/streams"
)

// storing is how many other branches store while a live event is measured.
const storing = 8

// latency compares the way from a producer to a reader with an echo of the same
// bytes over HTTP, and for stored events a sync of them to disk after it.
func latency(ctx context.Context, o Options, s *site) (figures []bench.Figure, err error) {
	run, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	arrived, err := s.arrivals(reading, s.live(run))
	if err != nil {
		return nil, err
	}
	echo, err := streams.NewEcho(ctx, o.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, echo.Close()) }()
	way := func(event wire.Payload) bench.Side {
		return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			return streams.Timed(d, func() (time.Duration, error) {
				start := time.Now()
				if err := run.Publish(ctx, event); err != nil {
					return 0, err
				}
				select {
				case got := <-arrived: // often before the producer is answered
					return got.at.Sub(start), nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			})
		}
	}
	contest := func(name string, event wire.Payload, durable bool) error {
		if err := run.Publish(ctx, event); err != nil {
			return err
		}
		frame := (<-arrived).frame // the bytes that both sides carry
		f, err := bench.Contest{
			Name: name, Unit: "µs", Better: bench.Lower, Target: new(1.5), Ours: way(event), Floor: echo.Floor(frame, durable),
		}.Run(ctx, o.Plan)
		figures = append(figures, f)
		return err
	}
	if err := contest("publish to SSE reader, stored event, p50", delta, true); err != nil {
		return figures, err
	}
	if err := contest("publish to SSE reader, live event, p50", progress, false); err != nil {
		return figures, err
	}
	others, err := s.several(ctx, storing)
	if err != nil {
		return figures, err
	}
	stop := store(ctx, others)
	err = contest("the same while other branches store", progress, false)
	return figures, errors.Join(err, stop())
}

// store lets runs store deltas until it is stopped.
func store(ctx context.Context, runs []*dialect.Run) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var writing sync.WaitGroup
	failed := make(chan error, len(runs))
	for _, run := range runs {
		writing.Go(func() {
			for ctx.Err() == nil {
				if err := run.Publish(ctx, delta); err != nil && ctx.Err() == nil {
					failed <- err
					return
				}
			}
		})
	}
	return func() error {
		cancel()
		writing.Wait()
		select {
		case err := <-failed:
			return err
		default:
			return nil
		}
	}
}

// arrival is an event's frame, and when it arrived.
type arrival struct {
	at    time.Time
	frame []byte
}

// arrivals reports when each event of a stream reaches a reader.
func (s *site) arrivals(ctx context.Context, url string) (<-chan arrival, error) {
	body, err := streams.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	arrived := make(chan arrival, 1024)
	go func() {
		defer body.Close()
		buf := make([]byte, 64<<10)
		var rest []byte
		for {
			n, err := body.Read(buf)
			now := time.Now()
			rest = append(rest, buf[:n]...)
			for {
				frame, more, whole := bytes.Cut(rest, []byte("\n\n"))
				if !whole {
					break
				}
				if frame[0] != ':' { // a comment shows only that the stream is open
					arrived <- arrival{now, append(bytes.Clone(frame), "\n\n"...)}
				}
				rest = more
			}
			if err != nil {
				return
			}
		}
	}()
	return arrived, nil
}
