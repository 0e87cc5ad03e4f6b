package hubbench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/adapter/conversation"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/bench"
)

// room is a conversation that opens at once, as channels of a home do.
type room struct{ channel.Adapter }

func (r room) Manifest() channel.Manifest {
	m := r.Adapter.Manifest()
	m.Type = "bench-room"
	return m
}

func (room) Opening() channel.Opening { return channel.AtOnce }

func rooms() channel.Adapter { return room{conversation.Adapter{}} }

// keyed compares posts with a fresh idempotency key, and openings with a name,
// with plain posts: both take a claim.
func keyed(ctx context.Context, o Options) (figures []bench.Figure, err error) {
	s, err := open(ctx, filepath.Join(o.Dir, "keyed"), hub.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	channels, err := s.channels(ctx, o.Posters, "conversation", nil, 0)
	if err != nil {
		return nil, err
	}
	home, err := s.hub.Home(ctx, "bench", "keyed")
	if err != nil {
		return nil, err
	}
	by := &hub.Caller{Agents: []string{s.a}}
	var n atomic.Int64
	plain := func(ctx context.Context, i int) error { return s.post(ctx, channels[i]) }
	withKey := func(ctx context.Context, i int) error {
		_, err := s.hub.Post(ctx, &envelope.Envelope{
			Channel: channels[i], Sender: s.a, Type: envelope.TypeText, Data: text, Key: fmt.Sprint("key-", n.Add(1)),
		}, by)
		return err
	}
	withName := func(ctx context.Context, _ int) error {
		_, err := s.hub.AdmitNamed(ctx, hub.Opening{
			Home: home.ID, Type: "bench-room", Name: fmt.Sprint("name-", n.Add(1)), Participants: []string{s.b},
		}, &envelope.Envelope{Sender: s.a, Type: envelope.TypeText, Data: text}, by).Wait(ctx)
		return err
	}
	rate := func(op func(context.Context, int) error) bench.Side {
		return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			perSecond, took, _, err := together(ctx, o.Posters, d, op)
			p50, p99 := bench.Latencies(took)
			return bench.Sample{Value: perSecond, P50: p50, P99: p99}, err
		}
	}
	for _, c := range []bench.Contest{
		{Name: "posts with a fresh idempotency key, against posts without", Target: ptr(0.7), Ours: rate(withKey)},
		{Name: "channels opened by name with their first envelope, against posts", Target: ptr(0.3), Ours: rate(withName)},
	} {
		c.Unit, c.Better, c.Floor = "1/s", bench.Higher, rate(plain)
		f, err := c.Run(ctx, o.Plan)
		figures = append(figures, f)
		if err != nil {
			return figures, err
		}
	}
	return figures, nil
}
