// Package apibench measures the hub's own HTTP interface: how long an envelope
// takes from its sender to a follower, and how fast one sender reaches many.
// It never judges; the targets are in the figures.
package apibench

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/hubbench"
	"github.com/parley-hub/parley/internal/bench/streams"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/api"
)

// Options of a run.
type Options struct {
	Dir       string // for data; empty: a temporary folder
	Followers int    // of the fan-out; 0: 50
	bench.Plan
}

// Run measures every figure.
func Run(ctx context.Context, o Options) (report bench.Report, err error) {
	o.Followers = cmp.Or(o.Followers, 50)
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "parley-bench-api-"); err != nil {
			return report, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	}
	report = bench.Report{Bench: "api", Params: map[string]any{"followers": o.Followers, "text_bytes": len(text)}}
	s, err := open(ctx, filepath.Join(o.Dir, "hub"))
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, part := range []func(context.Context, Options, *site) (bench.Figure, error){latency, fanOut, asViewer, wideFeed, wideLatency, watched} {
		figure, err := part(ctx, o, s)
		if err != nil {
			return report, err
		}
		report.Figures = append(report.Figures, figure)
	}
	return report, nil
}

// text is what is said: an envelope of about 600 bytes on the stream.
var text = func() []byte {
	b := []byte(`{"text":"`)
	for len(b) < 200 {
		b = append(b, "the quick brown fox "...)
	}
	return append(b, `"}`...)
}()

// site is a hub on a disk, behind its interface on a loopback port.
type site struct {
	engine  *disk.Engine
	hub     *hub.Hub
	http    *streams.Server
	alice   string
	bob     string
	channel string
}

func open(ctx context.Context, dir string) (_ *site, err error) {
	quiet := slog.New(slog.DiscardHandler)
	engine, err := disk.Open(dir, disk.Options{Logger: quiet})
	if err != nil {
		return nil, err
	}
	h, err := hub.Open(ctx, engine, hub.Options{Adapters: adapter.All(), Log: quiet, TTLSweep: -1, ExpectationSweep: -1, Limits: hub.Limits{Inbox: 1 << 30}})
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	s := &site{engine: engine, hub: h}
	if s.alice, s.bob, s.channel, err = talk(ctx, h); err == nil {
		v1 := api.New(api.Config{Hub: h, Version: "bench", Log: quiet})
		s.http, err = streams.Listen(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v1.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Principal{Role: access.Operator})))
		}))
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *site) close() error {
	if s.http != nil {
		s.http.Close()
	}
	s.hub.Close()
	return s.engine.Close()
}

// talk opens a conversation of two who never read.
func talk(ctx context.Context, h *hub.Hub) (alice, bob, channel string, err error) {
	ids := map[string]string{}
	for _, name := range []string{"alice", "bob"} {
		rule := identity.DefaultRule()
		rule.Limits.Inbox.MaxPending = 0
		p, err := h.Register(ctx, hub.Registration{
			Passport: &identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}}, Rule: &rule,
		})
		if err != nil {
			return "", "", "", err
		}
		ids[name] = p.ID()
	}
	if err := h.Bind(ids["bob"], hubbench.Acker{Hub: h}); err != nil {
		return "", "", "", err
	}
	zero := identity.SecondsTTL(0)
	opened, err := h.Open(ctx, hub.Opening{Creator: ids["alice"], Type: "conversation", Participants: []string{ids["bob"]}, TTL: &zero})
	if err != nil {
		return "", "", "", err
	}
	return ids["alice"], ids["bob"], opened.ID, nil
}
