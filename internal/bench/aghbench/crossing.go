package aghbench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/ag2bench"
	"github.com/parley-hub/parley/internal/bench/streams"
)

// maxCrossing is how many times longer a message into another dialect may take than the
// slower of the two dialects.
const maxCrossing = 1.25

// Crossing measures a `say` until an AG2 client that is joined to the room has it. It
// compares that with the slower of two: a `say` to an AGH peer over NATS, and an AG2
// post to another AG2 client.
func Crossing(ctx context.Context, plan bench.Plan) (f bench.Figure, err error) {
	dir, err := os.MkdirTemp("", "parley-bench-bridge-")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := open(ctx, dir+"/hub", true)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	clients, err := ag2.New(ag2.Config{Hub: s.hub, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return f, err
	}
	web := httptest.NewServer(clients)
	defer web.Close()
	defer func() { err = errors.Join(err, clients.Close()) }()
	url := "ws" + strings.TrimPrefix(web.URL, "http")

	// What is said in one room reaches the AG2 client only, in the other the AGH peer
	// only.
	crossing, err := s.speaker(ctx, dock, "speaker.s01")
	if err != nil {
		return f, err
	}
	own, err := s.speaker(ctx, pier, "speaker.s02")
	if err != nil {
		return f, err
	}
	reader, err := ag2bench.Read(ctx, url, "keeper.s01")
	if err != nil {
		return f, err
	}
	defer reader.Close()
	if _, err := s.join(ctx, "keeper.s01"); err != nil {
		return f, err
	}
	heard, stop, err := s.hear()
	if err != nil {
		return f, err
	}
	defer stop()
	posts, end, err := ag2bench.Delivery(ctx, url)
	if err != nil {
		return f, err
	}
	defer end()
	return bench.Contest{
		Name: "AGH say to AG2 reader, p50", Unit: "µs", Better: bench.Lower, Target: new(maxCrossing),
		Ours:  until(crossing, func(context.Context) error { return reader.Text() }),
		Floor: slower(until(own, heard), posts),
	}.Run(ctx, plan)
}

const pier = "pier"

// speaker joins a hosted peer to a room, and returns a function that says
// something to everyone.
func (s *site) speaker(ctx context.Context, room, peer string) (say func(context.Context) error, err error) {
	var joined struct {
		Session string `json:"session_id"`
	}
	if err := s.call(ctx, http.MethodPost, "/channels/"+room+"/peers", map[string]string{"agent": peer, "peer_id": peer}, &joined); err != nil {
		return nil, err
	}
	from := &poster{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}}
	body := fmt.Appendf(nil, `{"session_id":%q,"channel":%q,"kind":"say","surface":"thread","thread_id":"thread_crossing","body":{"text":%q}}`, joined.Session, room, text)
	return func(ctx context.Context) error { return from.post(ctx, s.url+base+"/send", body) }, nil
}

// until measures how long an operation takes until its effect has arrived.
func until(do, arrived func(context.Context) error) bench.Side {
	return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		return streams.Timed(d, func() (time.Duration, error) {
			start := time.Now()
			done := make(chan error, 1)
			go func() { done <- do(ctx) }()
			if err := arrived(ctx); err != nil {
				return 0, err
			}
			took := time.Since(start)
			return took, <-done
		})
	}
}

// slower returns the slower of two sides, each measured for half the time.
func slower(a, b bench.Side) bench.Side {
	return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		first, err := a(ctx, d/2)
		if err != nil {
			return first, err
		}
		second, err := b(ctx, d/2)
		if second.Value < first.Value {
			second = first
		}
		return second, err
	}
}

// hear waits for what is said to everyone, as a remote peer reads it.
func (s *site) hear() (heard func(context.Context) error, stop func(), err error) {
	conn, err := nats.Connect(s.nats, nats.Token(token))
	if err != nil {
		return nil, nil, err
	}
	subject, err := wire.BroadcastSubject(0, workspace, pier)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	arrived, err := conn.SubscribeSync(subject)
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return func(ctx context.Context) error {
		for {
			m, err := arrived.NextMsgWithContext(ctx)
			if err != nil || strings.Contains(string(m.Data), `"say"`) {
				return err
			}
		}
	}, conn.Close, nil
}
