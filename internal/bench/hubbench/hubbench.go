// Package hubbench measures the hub: what admission costs on top of the
// journal, what opening and replaying cost, and what a channel weighs.
package hubbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/conversation"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
)

// Options of a run.
type Options struct {
	Dir      string // for data; empty: a temporary folder
	Posters  int    // 0: 64
	Channels int    // for opening and memory; 0: 100,000
	bench.Plan
}

// Run measures every figure.
func Run(ctx context.Context, o Options) (report bench.Report, err error) {
	o.Posters = cmp.Or(o.Posters, 64)
	o.Channels = cmp.Or(o.Channels, 100_000)
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "parley-bench-hub-"); err != nil {
			return report, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	}
	report = bench.Report{Bench: "hub", Params: map[string]any{"posters": o.Posters, "channels": o.Channels, "text_bytes": len(text)}}
	for _, part := range []func(context.Context, Options) ([]bench.Figure, error){admission, many, keyed, viewer, replay, touch, opening, attach, due, weight} {
		figures, err := part(ctx, o)
		report.Figures = append(report.Figures, figures...)
		if err != nil {
			return report, err
		}
	}
	return report, nil
}

// text is the data of every post: with its header, a record of about 600 bytes.
var text = func() []byte {
	b := []byte(`{"text":"`)
	for len(b) < 440 {
		b = append(b, "the quick brown fox "...)
	}
	return append(b, `"}`...)
}()

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

func ptr(f float64) *float64 { return &f }

// site is a hub on a disk with two agents that never read.
type site struct {
	engine *disk.Engine
	hub    *hub.Hub
	a, b   string
}

func open(ctx context.Context, dir string, o hub.Options) (*site, error) {
	return openOn(ctx, dir, vfs.Default, o)
}

func openOn(ctx context.Context, dir string, fs vfs.FS, o hub.Options) (*site, error) {
	engine, err := disk.Open(dir, disk.Options{FS: fs, Logger: silent()})
	if err != nil {
		return nil, err
	}
	o.Adapters, o.Log = append(adapter.All(), rooms(), thread{room{conversation.Adapter{}}}), silent()
	o.TTLSweep, o.ExpectationSweep, o.Limits.Inbox = -1, -1, 1<<30
	h, err := hub.Open(ctx, engine, o)
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	s := &site{engine: engine, hub: h}
	if s.a, err = s.agent(ctx, "a"); err == nil {
		s.b, err = s.agent(ctx, "b")
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *site) close() error {
	s.hub.Close()
	return s.engine.Close()
}

// agent registers a name, or finds it, and accepts every invitation for it.
func (s *site) agent(ctx context.Context, name string) (string, error) {
	id, ok := s.hub.FindAgent(name)
	if !ok {
		rule := identity.DefaultRule()
		rule.Limits.Inbox.MaxPending = 0
		p, err := s.hub.Register(ctx, hub.Registration{
			Passport: &identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}}, Rule: &rule,
		})
		if err != nil {
			return "", err
		}
		id = p.ID()
	}
	return id, s.hub.Bind(id, Acker{s.hub})
}

// Acker is an endpoint that accepts every invitation and ignores the rest.
type Acker struct{ Hub *hub.Hub }

// ID implements hub.Endpoint.
func (Acker) ID() string { return "bench" }

// Deliver implements hub.Endpoint.
func (a Acker) Deliver(n *hub.Notice) error {
	if n.Envelope.Type == envelope.TypeInvite {
		a.Hub.Admit(context.Background(), &envelope.Envelope{
			Channel: n.Envelope.Channel, Sender: n.Recipient, Type: envelope.TypeInviteAck, Data: []byte(`{}`),
		}, nil)
	}
	return nil
}

// Replay implements hub.Endpoint.
func (a Acker) Replay(_ context.Context, n *hub.Notice) error { return a.Deliver(n) }

// CutOff never happens: it queues nothing.
func (Acker) CutOff(error) {}

func (s *site) channel(ctx context.Context, kind string, knobs []byte) (string, error) {
	zero := identity.SecondsTTL(0)
	opened, err := s.hub.Open(ctx, hub.Opening{Creator: s.a, Type: kind, Participants: []string{s.b}, Knobs: knobs, TTL: &zero})
	if err != nil {
		return "", err
	}
	return opened.ID, nil
}

func (s *site) post(ctx context.Context, channel string) error {
	_, err := s.hub.Post(ctx, &envelope.Envelope{Channel: channel, Sender: s.a, Type: envelope.TypeText, Data: text}, &hub.Caller{Agents: []string{s.a}})
	return err
}

// together runs op in many goroutines until the time is over. It reports how often op
// ran, how long each call took, and its CPU time.
func together(ctx context.Context, n int, d time.Duration, op func(ctx context.Context, i int) error) (perSecond float64, took []time.Duration, cpu time.Duration, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	before, start := bench.CPU(), time.Now()
	end := start.Add(d)
	for i := range n {
		wg.Go(func() {
			var mine []time.Duration
			var failed error
			for at := time.Now(); ; { // once at least, however late the goroutine starts
				failed = op(ctx, i)
				now := time.Now()
				mine = append(mine, now.Sub(at))
				if at = now; failed != nil || !at.Before(end) {
					break
				}
			}
			mu.Lock()
			defer mu.Unlock()
			took, err = append(took, mine...), errors.Join(err, failed)
		})
	}
	wg.Wait()
	elapsed := time.Since(start)
	return float64(len(took)) / elapsed.Seconds(), took, (bench.CPU() - before) / time.Duration(len(took)), err
}

// admission compares posts with the journal's own appends.
func admission(ctx context.Context, o Options) (figures []bench.Figure, err error) {
	s, err := open(ctx, filepath.Join(o.Dir, "admission"), hub.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	channels, err := s.channels(ctx, o.Posters, "conversation", nil, 0)
	if err != nil {
		return nil, err
	}
	record := make([]byte, 600)
	appends := func(ctx context.Context, i int) error {
		log := journal.PartitionName{Tenant: "bench", Partition: fmt.Sprint(i)}.In("history", "-")
		ticket, err := s.engine.Append(ctx, journal.Batch{Appends: []journal.Append{{Log: log, Records: []journal.Record{{Data: record}}}}})
		if err != nil {
			return err
		}
		return ticket.Wait(ctx)
	}
	own := func(ctx context.Context, i int) error { return s.post(ctx, channels[i]) }
	hot := func(ctx context.Context, _ int) error { return s.post(ctx, channels[0]) }
	rate := func(op func(context.Context, int) error) bench.Side {
		return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			n, took, _, err := together(ctx, o.Posters, d, op)
			p50, p99 := bench.Latencies(took)
			return bench.Sample{Value: n, P50: p50, P99: p99}, err
		}
	}
	cost := func(op func(context.Context, int) error) bench.Side {
		return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			_, _, cpu, err := together(ctx, o.Posters, d, op)
			return bench.Sample{Value: float64(cpu.Nanoseconds()) / 1000}, err
		}
	}
	for _, c := range []bench.Contest{
		{Name: "admissions, a channel each", Unit: "1/s", Better: bench.Higher, Target: ptr(0.7), Ours: rate(own), Floor: rate(appends)},
		{Name: "admissions, one hot channel", Unit: "1/s", Better: bench.Higher, Target: ptr(0.5), Ours: rate(hot), Floor: rate(appends)},
		{Name: "CPU for each admission", Unit: "µs", Better: bench.Lower, Target: ptr(3), Ours: cost(own), Floor: cost(appends)},
	} {
		f, err := c.Run(ctx, o.Plan)
		if err != nil {
			return figures, err
		}
		figures = append(figures, f)
	}
	return figures, nil
}
