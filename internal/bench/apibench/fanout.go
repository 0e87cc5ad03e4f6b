package apibench

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/streams"
)

// fanOut compares one sender's reach through the hub with a loop that writes
// and flushes every event to every follower.
func fanOut(ctx context.Context, o Options, s *site) (_ bench.Figure, err error) {
	head, err := s.hub.Position(ctx, s.channel)
	if err != nil {
		return bench.Figure{}, err
	}
	ours, err := streams.Gather(ctx, s.http.URL+"/v1/channels/"+s.channel+"/events?after="+head.String(), o.Followers)
	if err != nil {
		return bench.Figure{}, err
	}
	defer ours.Leave()
	loop := &streams.Flushing{}
	server, err := streams.Listen(ctx, loop)
	if err != nil {
		return bench.Figure{}, err
	}
	defer server.Close()
	theirs, err := streams.Gather(ctx, server.URL, o.Followers)
	if err != nil {
		return bench.Figure{}, err
	}
	defer theirs.Leave()
	defer loop.End()
	frame := fmt.Appendf(nil, "id: 1.1.1\nevent: envelope\ndata: {\"padding\":%q,\"event_data\":%s}\n\n", fmt.Sprintf("%0360d", 0), text)

	return bench.Contest{
		Name: fmt.Sprintf("fan-out 1 to %d over SSE", o.Followers), Unit: "deliveries/s", Better: bench.Higher, Target: new(3.0),
		Ours: func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			return streams.Spread(ctx, d, ours, func(n int64) error { return s.publish(ctx, n) })
		},
		Floor: func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			return streams.Spread(ctx, d, theirs, func(n int64) error { return loop.Publish(n, frame) })
		},
	}.Run(ctx, o.Plan)
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
