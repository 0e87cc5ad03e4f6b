package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-hub/parley/console"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/answers"
	"github.com/parley-hub/parley/internal/logsample"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/api"
	"github.com/parley-hub/parley/server/config"
)

// compose makes the hub and its dialects on a journal, and returns what the server
// serves. The function that it returns closes all of it.
func compose(ctx context.Context, cfg config.Config, engine journal.Engine, log *slog.Logger) (server.Deps, func() error, error) {
	keys := access.NewKeys()
	opts := hubOptions(cfg, keys, log)
	var err error
	if opts.Adapters, err = adapters(cfg); err != nil {
		return server.Deps{}, nil, err
	}
	if log.Enabled(ctx, slog.LevelDebug) {
		opts.Listeners = append(opts.Listeners, channelLog{log: log})
	}
	spans, err := tracingOf(ctx, cfg.Tracing, log)
	if err != nil {
		return server.Deps{}, nil, err
	}
	opts.Tracing = spans.provider()
	h, err := hub.Open(ctx, engine, opts)
	if err != nil {
		return server.Deps{}, nil, err
	}
	if err := keys.Load(ctx, h, cfg.Data.Dir); err != nil {
		h.Close()
		return server.Deps{}, nil, err
	}
	keys.OnFailure(auditFailures(h, log))
	sessions := access.NewSessions(keys, access.SessionLimits{Lasts: cfg.Console.Session, Most: cfg.Console.Sessions})
	if err := sessions.Load(ctx, h); err != nil {
		h.Close()
		return server.Deps{}, nil, err
	}
	budget := answers.New(int64(cfg.Limits.Answers))
	host, err := hostOf(cfg, h, log)
	if err != nil {
		h.Close()
		return server.Deps{}, nil, err
	}
	dialects, err := dialectsOf(cfg, h, keys, budget, host, log)
	if err != nil {
		h.Close()
		return server.Deps{}, nil, err
	}
	talks, err := chats(ctx, cfg, h, hostedChats(host, dialects), log)
	if err != nil {
		_ = dialects.close()
		h.Close()
		return server.Deps{}, nil, err
	}
	page := console.Off()
	if cfg.Console.Enabled {
		if page, err = console.Handler(); err != nil {
			talks.Close()
			h.Close()
			return server.Deps{}, nil, err
		}
	}
	registry := registryOf(append(spans.collectors(), hubMetrics{h}, journalMetrics{engine})...)
	recorder := recorderOf(registry, engine)
	v1 := api.New(api.Config{
		Hub: h, Backup: backupOf(engine), Cluster: clusterHealth(cfg, engine), Version: thisBuild().Version, Name: hostName(), Log: log, Stopping: server.Stopping,
		Stands: keys.Stands, Keys: keys, Sessions: sessions, Stats: recorder, RefusedAtDoor: refusedAtDoor(registry), Answers: budget, Chat: talks, ChatUser: chatUser(cfg, h),
		Warnings: dialects.channelWarnings, Takes: dialects.checkEnvelope, TakesOpening: dialects.checkOpening,
		Limits: api.Limits{
			Body: int64(cfg.Limits.Body), Import: int64(cfg.Limits.Import), Page: cfg.Limits.Page, PageBytes: int(cfg.Limits.PageBytes), View: int64(cfg.Limits.View),
			Search: int64(cfg.Limits.Search), Followers: cfg.Limits.Followers, States: cfg.Limits.States,
			Write: cfg.Limits.FollowerWrite, KeepAlive: cfg.Limits.KeepAlive,
		},
	})
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "parley_followers", Help: "Streams of /v1 that are open now.",
	}, func() float64 { return float64(v1.Followers()) }))
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "parley_slow_readers_total", Help: "Streams of /v1 cut off because they read too slowly.",
	}, func() float64 { return float64(v1.SlowReaders()) }))
	recording, stopRecording := context.WithCancel(context.WithoutCancel(ctx))
	var recorded sync.WaitGroup
	recorded.Go(func() { recorder.Run(recording) })
	deps := server.Deps{
		Page:     page,
		Keys:     keys,
		Sessions: sessions,
		Log:      log,
		Version:  thisBuild().Version,
		V1:       v1,
		Metrics:  registry,
		Dialects: dialects,
		Ready:    []server.Check{journalReady(engine)},
	}
	closeAll := func() error {
		stopRecording()
		recorded.Wait()
		talks.Close()
		err := dialects.close()
		h.Close()
		spans.close(cfg) // after the hub, which ends its spans when it closes
		return err
	}
	return deps, closeAll, nil
}

// hostName returns the name of the machine, or "".
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// auditFailures returns a function that writes failed authentications to the audit
// and the log.
func auditFailures(h *hub.Hub, log *slog.Logger) func(access.Failure) {
	var warnings logsample.Limiter
	return func(f access.Failure) {
		warnings.Warn(log, time.Now(), "authentication failed", "address", f.Address, "door", f.Door, "name", f.Name, "untold", f.Untold)
		ctx, cancel := context.WithTimeout(context.Background(), auditTimeout)
		defer cancel()
		record := map[string]any{"address": f.Address, "door": f.Door, "name": f.Name, "untold": f.Untold}
		if err := h.Audit(ctx, "auth_failed", record); err != nil {
			log.Warn("not audited", "kind", "auth_failed", "address", f.Address, "error", err)
		}
	}
}

// auditTimeout bounds how long a refusal waits for its audit record.
const auditTimeout = 2 * time.Second

// backupOf returns a function that streams a backup; nil: the engine cannot make one.
func backupOf(engine journal.Engine) func(context.Context, io.Writer) error {
	switch store := engine.(type) {
	case *disk.Engine:
		return func(ctx context.Context, w io.Writer) error {
			_, err := store.Backup(ctx, w, nil)
			return err
		}
	case *cluster.Engine:
		return store.Backup
	}
	return nil
}

func hubOptions(cfg config.Config, keys *access.Keys, log *slog.Logger) hub.Options {
	return hub.Options{
		Auth:         identity.NewAuthRegistry(allowNone(noneFrom(cfg), keys), agentKeys(keys)),
		Log:          log,
		TrustClients: trustsClients(cfg),

		IgnoreExpectations: ignoresExpectations(cfg),

		InviteAckTimeout:  cfg.Hub.InviteAckTimeout,
		TTLSweep:          offIfZero(cfg.Hub.TTLSweepInterval),
		ExpectationSweep:  offIfZero(cfg.Hub.ExpectationSweepInterval),
		RestartGrace:      offIfZero(cfg.Hub.RestartGrace),
		HoldFor:           cfg.Hub.HoldFor,
		IdempotencyWindow: cfg.Hub.IdempotencyWindow,
		EvictAfter:        cfg.Hub.EvictAfter,
		MaxHops:           cfg.Bridge.MaxHops,
		CloseWithin:       cfg.Shutdown.Timeout,
		Limits: hub.Limits{
			Agents:         cfg.Limits.Agents,
			Participants:   cfg.Limits.Participants,
			EventBytes:     int(cfg.Limits.Event),
			RecordBytes:    int(cfg.Limits.Record),
			ProfileBytes:   int(cfg.Limits.Profile),
			ProfileCache:   int(cfg.Limits.ProfileCache),
			RecentEvents:   int(cfg.Limits.RecentEvents),
			InFlight:       cfg.Limits.InFlight,
			LoadedChannels: cfg.Limits.LoadedChannels,
			Endpoints:      cfg.Limits.Endpoints,
			Transient:      cfg.Limits.Transient,
			Replay:         cfg.Limits.Replay,
			Held:           cfg.Limits.Held,
			Inbox:          cfg.Limits.Inbox,
			Deadlines:      cfg.Limits.Deadlines,
			OpenRequests:   cfg.Limits.OpenRequests,
			AskedRequests:  cfg.Limits.AskedRequests,
			OpenTasks:      cfg.Limits.OpenTasks,
			OpenTasksOwner: cfg.Limits.OpenTasksOwner,
			RuleGlobs:      cfg.Limits.RuleGlobs,
			Lists:          int(cfg.Limits.Lists),
			Reads:          int(cfg.Limits.Reads),
			DocumentBytes:  int(cfg.Limits.Document),
			Documents:      cfg.Limits.Documents,
			Content:        int64(cfg.Limits.Content),
			ContentHome:    int64(cfg.Limits.ContentTotal),
			ContentHub:     int64(cfg.Limits.ContentHub),
		},
	}
}

// offIfZero translates a setting of 0, which switches a sweep off, to -1, because 0
// selects the default in hub.Options.
func offIfZero[T ~int64](interval T) T {
	if interval == 0 {
		return -1
	}
	return interval
}

func agentKeys(keys *access.Keys) identity.Authenticator {
	return identity.NewAPIKeyStore(func(name, token string) (known, ok bool) {
		return keys.HasAgent(name), keys.VerifyAgent(name, token)
	})
}
