// Package hpdbench measures HPD's events: how long one takes from its producer to
// a reader, how fast one producer reaches many, what waiting for every delta
// costs, and what a long branch costs. It never judges; the targets are in the
// figures.
package hpdbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/client/hpd"
	v1 "github.com/parley-hub/parley/client/v1"
	dialect "github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/streams"
	"github.com/parley-hub/parley/journal/disk"
)

// Options of a run.
type Options struct {
	Dir     string // for data; empty: a temporary folder
	Readers int    // of the fan-out; 0: 50
	Runs    int    // that stream at once; 0: 200
	Deltas  int    // of a long branch; 0: 100,000
	bench.Plan
}

// Run measures every figure.
func Run(ctx context.Context, o Options) (report bench.Report, err error) {
	for field, value := range map[*int]int{&o.Readers: 50, &o.Runs: 200, &o.Deltas: 100_000} {
		*field = cmp.Or(*field, value)
	}
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "parley-bench-events-"); err != nil {
			return report, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	}
	report = bench.Report{Bench: "events", Params: map[string]any{
		"readers": o.Readers, "runs": o.Runs, "deltas": o.Deltas, "delta_bytes": len(delta.Text),
	}}
	for i, part := range []func(context.Context, Options, *site) ([]bench.Figure, error){latency, fanOut, runs, posts, long} {
		figures, err := alone(ctx, o, i, part)
		report.Figures = append(report.Figures, figures...)
		if err != nil {
			return report, err
		}
	}
	return report, nil
}

// alone runs a measurement on a hub of its own.
func alone(ctx context.Context, o Options, i int, part func(context.Context, Options, *site) ([]bench.Figure, error)) (figures []bench.Figure, err error) {
	s, err := open(ctx, filepath.Join(o.Dir, fmt.Sprintf("hub-%d", i)))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return part(ctx, o, s)
}

// delta is what is stored: a few words, as a model streams them.
var delta = wire.TextDelta{MessageID: "m-1", Text: "the quick brown fox "}

// progress is shown live and not stored.
var progress = wire.ToolProgress{CallID: "call-1"}

// site is a hub on a disk with its HPD routes on a loopback port, and an agent whose
// runs the bench controls.
type site struct {
	engine *disk.Engine
	hub    *hub.Hub
	server *dialect.Server
	http   *streams.Server
	client *hpd.Client
	begun  chan *dialect.Run
}

// agent is a producer in this process.
const agent = "bench"

func open(ctx context.Context, dir string) (_ *site, err error) {
	quiet := slog.New(slog.DiscardHandler)
	engine, err := disk.Open(dir, disk.Options{Logger: quiet})
	if err != nil {
		return nil, err
	}
	h, err := hub.Open(ctx, engine, hub.Options{
		Adapters: append(adapter.All(), branch.New(branch.Options{Record: 16 << 10})),
		Auth:     identity.NewAuthRegistry(identity.None{}), Log: quiet, TTLSweep: -1, ExpectationSweep: -1,
	})
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	s := &site{engine: engine, hub: h, begun: make(chan *dialect.Run)}
	s.server, err = dialect.New(dialect.Config{Hub: h, Log: quiet, Producers: map[string]dialect.Producer{agent: dialect.ProducerFunc(
		func(ctx context.Context, run *dialect.Run, _ dialect.Work) error {
			select {
			case s.begun <- run:
			case <-ctx.Done():
			}
			<-ctx.Done() // until the hub is closed
			return nil
		},
	)}})
	if err == nil {
		err = s.server.Start(ctx)
	}
	if err == nil {
		s.http, err = streams.Listen(ctx, s.server)
	}
	if err == nil {
		via := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
		var reach *v1.Client
		reach, err = v1.New(s.http.URL, v1.Options{HTTP: via})
		s.client = hpd.New(reach)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *site) close() error {
	var err error
	if s.server != nil {
		err = s.server.Close()
	}
	if s.http != nil {
		s.http.Close()
	}
	s.hub.Close()
	return errors.Join(err, s.engine.Close())
}

// scope makes a session and returns its main branch.
func (s *site) scope(ctx context.Context) (wire.Scope, error) {
	made, err := s.client.CreateSession(ctx, wire.CreateSession{})
	if err != nil {
		return wire.Scope{}, err
	}
	return wire.Scope{Session: made.ID, Branch: wire.MainBranch}, nil
}

// run begins a run on a branch of its own.
func (s *site) run(ctx context.Context) (*dialect.Run, error) {
	at, err := s.scope(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.client.Input(ctx, agent, at, "go"); err != nil {
		return nil, err
	}
	select {
	case run := <-s.begun:
		return run, nil
	case <-time.After(10 * time.Second):
		return nil, errors.New("a run did not begin")
	}
}

// several begins many runs.
func (s *site) several(ctx context.Context, n int) ([]*dialect.Run, error) {
	list := make([]*dialect.Run, n)
	for i := range list {
		var err error
		if list[i], err = s.run(ctx); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// live returns where a run's branch is streamed.
func (s *site) live(run *dialect.Run) string {
	at := run.Scope()
	return s.http.URL + "/hpd/agents/" + agent + "/sessions/" + at.Session + "/branches/" + at.Branch + "/events/live"
}
