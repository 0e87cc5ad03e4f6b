package hpdbench

import (
	"context"
	"fmt"
	"time"

	dialect "github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/streams"
)

// fanOut compares one producer's reach through the hub with a loop that writes
// and flushes every event to every reader.
func fanOut(ctx context.Context, o Options, s *site) ([]bench.Figure, error) {
	run, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	frame, err := s.frame(ctx, run)
	if err != nil {
		return nil, err
	}
	ours, err := streams.Gather(ctx, s.live(run), o.Readers)
	if err != nil {
		return nil, err
	}
	defer ours.Leave()
	loop := &streams.Flushing{}
	server, err := streams.Listen(ctx, loop)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	theirs, err := streams.Gather(ctx, server.URL, o.Readers)
	if err != nil {
		return nil, err
	}
	defer theirs.Leave()
	defer loop.End()
	f, err := bench.Contest{
		Name: fmt.Sprintf("fan-out 1 to %d over SSE", o.Readers), Unit: "deliveries/s", Better: bench.Higher, Target: new(3.0),
		Ours: func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			return streams.Spread(ctx, d, ours, func(n int64) error {
				events := make([]wire.Payload, n)
				for i := range events {
					events[i] = delta
				}
				return run.Publish(ctx, events...)
			})
		},
		Floor: func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			return streams.Spread(ctx, d, theirs, func(n int64) error { return loop.Publish(n, frame) })
		},
	}.Run(ctx, o.Plan)
	return []bench.Figure{f}, err
}

// frame returns a stored event as a reader gets it.
func (s *site) frame(ctx context.Context, run *dialect.Run) ([]byte, error) {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	arrived, err := s.arrivals(reading, s.live(run))
	if err != nil {
		return nil, err
	}
	if err := run.Publish(ctx, delta); err != nil {
		return nil, err
	}
	return (<-arrived).frame, nil
}
