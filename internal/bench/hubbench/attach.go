package hubbench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/bench"
)

// thread is a channel that takes its members from a room.
type thread struct{ room }

func (t thread) Manifest() channel.Manifest {
	m := t.room.Manifest()
	m.Type = "bench-thread"
	m.Participants = channel.Bounds{Min: 1}
	return m
}

func (thread) ValidateCreate(*channel.Metadata) error { return nil }

func (thread) ValidateSend(*channel.Metadata, channel.State, *envelope.Envelope) error { return nil }

// attach compares the attach of a member of a room with many open threads, in which it
// said nothing, with that in a room with few. It ends when the member has what it
// missed in the room and in a channel that is younger than the threads.
func attach(ctx context.Context, o Options) (figures []bench.Figure, err error) {
	side := func(threads int) (bench.Side, func() error, error) {
		s, err := open(ctx, filepath.Join(o.Dir, fmt.Sprint("attach", threads)), hub.Options{})
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			var took []time.Duration
			for start := time.Now(); len(took) == 0 || time.Since(start) < d; {
				at := time.Now()
				inbox := hub.NewInbox(0)
				if err := s.hub.BindReplaying(ctx, s.b, inbox, ""); err != nil {
					return bench.Sample{}, err
				}
				for missed := 0; missed < 2; {
					n, err := inbox.Next(ctx)
					if err != nil {
						return bench.Sample{}, err
					}
					if n.Envelope.Type == envelope.TypeText {
						missed++
					}
				}
				took = append(took, time.Since(at))
			}
			p50, p99 := bench.Latencies(took)
			return bench.Sample{Value: float64(p50.Nanoseconds()) / 1000, P50: p50, P99: p99}, nil
		}, s.close, s.threads(ctx, threads, o.Posters)
	}
	many, closeMany, err := side(max(o.Channels/5, 20))
	if closeMany != nil {
		defer func() { err = errors.Join(err, closeMany()) }()
	}
	if err != nil {
		return nil, err
	}
	few, closeFew, err := side(10)
	if closeFew != nil {
		defer func() { err = errors.Join(err, closeFew()) }()
	}
	if err != nil {
		return nil, err
	}
	f, err := bench.Contest{
		Name: fmt.Sprintf("attach with %d open threads, against 10", max(o.Channels/5, 20)), Unit: "µs",
		Better: bench.Lower, Target: ptr(2), Ours: many, Floor: few,
	}.Run(ctx, o.Plan)
	return []bench.Figure{f}, err
}

// threads opens a room of both agents and a number of its threads. One of the agents
// has said something in each.
func (s *site) threads(ctx context.Context, n, posters int) error {
	home, err := s.hub.Home(ctx, "bench", "attach")
	if err != nil {
		return err
	}
	parent, err := s.hub.Open(ctx, hub.Opening{Creator: s.a, Home: home.ID, Type: "bench-room", Participants: []string{s.b}})
	if err != nil {
		return err
	}
	if err := s.post(ctx, parent.ID); err != nil {
		return err
	}
	by := &hub.Caller{Agents: []string{s.a}}
	made := make(chan error, posters)
	for i := range posters {
		go func() {
			for j := i; j < n; j += posters {
				_, err := s.hub.AdmitNamed(ctx, hub.Opening{Home: home.ID, Type: "bench-thread", Name: fmt.Sprint(j), MembersOf: parent.ID},
					&envelope.Envelope{Sender: s.a, Type: envelope.TypeText, Data: text}, by).Wait(ctx)
				if err != nil {
					made <- err
					return
				}
			}
			made <- nil
		}()
	}
	for range posters {
		err = errors.Join(err, <-made)
	}
	if err != nil {
		return err
	}
	last, err := s.channel(ctx, "conversation", nil)
	if err != nil {
		return err
	}
	return s.post(ctx, last)
}
