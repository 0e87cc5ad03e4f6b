package hpdbench

import (
	"bytes"
	"context"
	"errors"
	"os"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/streams"
)

// Crossing measures a text from AG2's side of the hub until an HPD reader of the same
// channel has it. It compares that with a stored event of HPD's own, which is the
// slower of the two dialects.
func Crossing(ctx context.Context, plan bench.Plan) (f bench.Figure, err error) {
	dir, err := os.MkdirTemp("", "parley-bench-bridge-")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := open(ctx, dir+"/hub")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	run, err := s.run(ctx)
	if err != nil {
		return f, err
	}
	own, err := s.arrivals(reading, s.live(run))
	if err != nil {
		return f, err
	}
	post, channelID, err := s.talk(ctx)
	if err != nil {
		return f, err
	}
	foreign, err := s.arrivals(reading, s.http.URL+"/hpd/agents/"+agent+"/sessions/"+channelID+"/branches/main/events/live")
	if err != nil {
		return f, err
	}
	return bench.Contest{
		Name: "AG2 post to HPD reader, p50", Unit: "µs", Better: bench.Lower, Target: new(1.25),
		Ours:  until(foreign, post),
		Floor: until(own, func(ctx context.Context) error { return run.Publish(ctx, delta) }),
	}.Run(ctx, plan)
}

// until measures how long an operation takes until the frame that ends it has arrived.
func until(arrived <-chan arrival, do func(context.Context) error) bench.Side {
	return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		return streams.Timed(d, func() (time.Duration, error) {
			start := time.Now()
			if err := do(ctx); err != nil {
				return 0, err
			}
			for {
				select {
				case got := <-arrived:
					if bytes.HasPrefix(got.frame, []byte("id: ")) || bytes.Contains(got.frame, []byte("\nid: ")) {
						return got.at.Sub(start), nil
					}
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			}
		})
	}
}

// talk opens a conversation of two and returns a function with which one of
// them says something.
func (s *site) talk(ctx context.Context) (post func(context.Context) error, channelID string, err error) {
	var ids []string
	for _, name := range []string{"asks", "answers"} {
		p, err := s.hub.Register(ctx, hub.Registration{Passport: &identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}}})
		if err != nil {
			return nil, "", err
		}
		ids = append(ids, p.ID())
	}
	opened, err := s.hub.Open(ctx, hub.Opening{Type: "conversation", Creator: ids[0], Participants: ids, RequiredAcks: new(int)})
	if err != nil {
		return nil, "", err
	}
	return func(ctx context.Context) error {
		_, err := s.hub.Post(ctx, &envelope.Envelope{Channel: opened.ID, Sender: ids[0], Type: envelope.TypeText, Data: []byte(`{"text":"the quick brown fox "}`)}, nil)
		return err
	}, opened.ID, nil
}
