package apibench

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/streams"
)

// Tabs of the console that are open, and the rows that each of them shows.
const (
	watchers = 20
	rows     = 50
)

// watched compares a post until a follower has it while others watch the summary and
// rows, including that of the channel, with the same while nobody watches.
func watched(ctx context.Context, o Options, s *site) (bench.Figure, error) {
	topics, err := s.topics(ctx)
	if err != nil {
		return bench.Figure{}, err
	}
	follow := s.follower(s.unfiltered)
	ours := func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		c, err := streams.Gather(ctx, s.http.URL+"/v1/watch?"+topics.Encode(), watchers)
		if err != nil {
			return bench.Sample{}, err
		}
		defer c.Leave()
		if err := c.Await(ctx, 2+rows); err != nil { // hello, the summary, and rows as they are
			return bench.Sample{}, err
		}
		return follow(ctx, d)
	}
	return bench.Contest{
		Name: fmt.Sprintf("publish to SSE follower with %d watchers, p50, against without", watchers), Unit: "µs",
		Better: bench.Lower, Target: new(1.1), Ours: ours, Floor: follow,
	}.Run(ctx, o.Plan)
}

// topics returns what a list of channels watches.
func (s *site) topics(ctx context.Context) (url.Values, error) {
	ids := []string{s.channel}
	zero := identity.SecondsTTL(0)
	for len(ids) < rows {
		opened, err := s.hub.Open(ctx, hub.Opening{Creator: s.alice, Type: "conversation", Participants: []string{s.bob}, TTL: &zero})
		if err != nil {
			return nil, err
		}
		ids = append(ids, opened.ID)
	}
	return url.Values{"topic": {"summary", "rows:" + strings.Join(ids, ",")}}, nil
}
