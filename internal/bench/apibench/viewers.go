package apibench

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/streams"
)

// asViewer compares followers that see as a member with followers that see
// everything.
func asViewer(ctx context.Context, o Options, s *site) (bench.Figure, error) {
	return s.against(ctx, o, "followers with a viewer, against without", func(ctx context.Context) (string, error) {
		url, err := s.unfiltered(ctx)
		return url + "&as=" + s.alice, err
	})
}

// wideFeed compares followers of the feed of all channels, as a member sees it,
// with followers of the one channel.
func wideFeed(ctx context.Context, o Options, s *site) (bench.Figure, error) {
	return s.against(ctx, o, "followers of /v1/events with a viewer, against one channel's without", s.wide)
}

// wideLatency compares the way from a sender to a follower of all channels with
// the way to a follower of the one channel.
func wideLatency(ctx context.Context, o Options, s *site) (bench.Figure, error) {
	return bench.Contest{
		Name: "publish to a follower of /v1/events with a viewer, p50, against one channel's without", Unit: "µs",
		Better: bench.Lower, Target: new(1.1), Ours: s.follower(s.wide), Floor: s.follower(s.unfiltered),
	}.Run(ctx, o.Plan)
}

// follower posts and waits until a follower has the event.
func (s *site) follower(from func(context.Context) (url string, err error)) bench.Side {
	return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		url, err := from(ctx)
		if err != nil {
			return bench.Sample{}, err
		}
		following, cancel := context.WithCancel(ctx)
		defer cancel()
		arrived, err := arrivals(following, url)
		if err != nil {
			return bench.Sample{}, err
		}
		return s.reach(ctx, d, arrived)
	}
}

// wide returns the stream of everything that a member sees, from now on.
func (s *site) wide(ctx context.Context) (string, error) {
	now, err := s.hub.Now(ctx)
	return fmt.Sprintf("%s/v1/events?after=%s&as=%s", s.http.URL, now, s.alice), err
}

// unfiltered returns the stream of the channel from now on.
func (s *site) unfiltered(ctx context.Context) (string, error) {
	head, err := s.hub.Position(ctx, s.channel)
	return fmt.Sprintf("%s/v1/channels/%s/events?after=%s", s.http.URL, s.channel, head), err
}

// against compares how fast followers of a stream are reached with how fast plain
// followers of the channel are. Each round has its own followers, because all followers
// share the processor.
func (s *site) against(ctx context.Context, o Options, name string, ours func(context.Context) (string, error)) (bench.Figure, error) {
	side := func(from func(context.Context) (string, error)) bench.Side {
		return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			url, err := from(ctx)
			if err != nil {
				return bench.Sample{}, err
			}
			c, err := streams.Gather(ctx, url, o.Followers)
			if err != nil {
				return bench.Sample{}, err
			}
			defer c.Leave()
			return streams.Spread(ctx, d, c, func(n int64) error { return s.publish(ctx, n) })
		}
	}
	return bench.Contest{
		Name: name, Unit: "deliveries/s", Better: bench.Higher, Target: new(0.9), Ours: side(ours), Floor: side(s.unfiltered),
	}.Run(ctx, o.Plan)
}
