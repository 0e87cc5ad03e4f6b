package hubbench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/bench"
)

// touch compares the first touch of a channel with a long log with that of one
// with a short log, which has no snapshot.
func touch(ctx context.Context, o Options) (figures []bench.Figure, err error) {
	s, err := open(ctx, filepath.Join(o.Dir, "touch"), hub.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	long, short := o.Channels, max(o.Channels/100, 1)
	ids := map[int]string{}
	for _, n := range []int{long, short} {
		if ids[n], err = s.channel(ctx, "discussion", nil); err != nil {
			return nil, err
		}
		if err := s.fill(ctx, ids[n], n); err != nil {
			return nil, err
		}
	}
	first := func(n int) bench.Side {
		return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			return repeated(d, func() (time.Duration, error) {
				s.hub.Evict()
				start := time.Now()
				_, err := s.hub.State(ctx, ids[n])
				return time.Since(start), err
			})
		}
	}
	f, err := bench.Contest{
		Name: fmt.Sprintf("first touch of a channel of %d envelopes, against %d", long, short),
		Unit: "µs", Better: bench.Lower, Target: ptr(3), Ours: first(long), Floor: first(short),
	}.Run(ctx, o.Plan)
	return []bench.Figure{f}, err
}

// viewer compares a strict follower that sees as a member with one that sees
// everything: from a post until the follower has it.
func viewer(ctx context.Context, o Options) (figures []bench.Figure, err error) {
	s, err := open(ctx, filepath.Join(o.Dir, "viewer"), hub.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	follow := func(as string) (bench.Side, error) {
		id, err := s.channel(ctx, "conversation", nil)
		return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			f, err := s.hub.Follow(ctx, id, hub.FollowOptions{As: as, FromNow: true, Strict: true})
			if err != nil {
				return bench.Sample{}, err
			}
			defer f.Close()
			return repeated(d, func() (time.Duration, error) {
				start := time.Now()
				p := s.hub.Admit(ctx, &envelope.Envelope{Channel: id, Sender: s.a, Type: envelope.TypeText, Data: text}, nil)
				if _, err := f.Next(ctx); err != nil {
					return 0, err
				}
				took := time.Since(start)
				_, err := p.Wait(ctx)
				return took, err
			})
		}, err
	}
	with, err := follow(s.b)
	if err != nil {
		return nil, err
	}
	without, err := follow("")
	if err != nil {
		return nil, err
	}
	f, err := bench.Contest{
		Name: "post until a strict follower with a viewer has it, p50", Unit: "µs", Better: bench.Lower, Target: ptr(1.1), Ours: with, Floor: without,
	}.Run(ctx, o.Plan)
	return []bench.Figure{f}, err
}

// repeated runs a function at least once, and again until the time is over. The sample
// is the median.
func repeated(d time.Duration, run func() (time.Duration, error)) (bench.Sample, error) {
	var took []time.Duration
	for start := time.Now(); len(took) == 0 || time.Since(start) < d; {
		t, err := run()
		if err != nil {
			return bench.Sample{}, err
		}
		took = append(took, t)
	}
	slices.Sort(took)
	p50 := took[len(took)/2]
	return bench.Sample{Value: float64(p50.Nanoseconds()) / 1000, P50: p50, P99: took[len(took)*99/100]}, nil
}
