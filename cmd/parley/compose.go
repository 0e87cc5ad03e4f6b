package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/wsconn"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/api"
	"github.com/parley-hub/parley/server/config"
)

// compose puts the hub and its dialects on the journal, and says what the
// server serves. The function it returns closes what it opened.
func compose(ctx context.Context, cfg config.Config, engine journal.Engine, keys *access.Keys, log *slog.Logger) (server.Deps, func() error, error) {
	h, err := hub.Open(ctx, engine, hubOptions(cfg, keys, log))
	if err != nil {
		return server.Deps{}, nil, err
	}
	agents, err := serveAG2(cfg, h, keys, log)
	if err != nil {
		h.Close()
		return server.Deps{}, nil, err
	}
	keys.OnChange(agents.Recheck)
	deps := server.Deps{
		Keys:    keys,
		Log:     log,
		Version: thisBuild().Version,
		V1: api.New(api.Config{
			Hub: h, Backup: backupOf(engine), Version: thisBuild().Version, Log: log, Stopping: server.Stopping, Stands: keys.Stands,
			Warnings: agents.Warnings, Takes: ag2.CheckEnvelope, TakesOpening: ag2.CheckOpening,
			Limits: api.Limits{
				Body: int64(cfg.Limits.Body), Page: cfg.Limits.Page, PageBytes: int(cfg.Limits.PageBytes), View: int64(cfg.Limits.View), Followers: cfg.Limits.Followers, Answers: int64(cfg.Limits.Answers),
				Write: cfg.Limits.FollowerWrite, KeepAlive: cfg.Limits.KeepAlive,
			},
		}),
		Metrics: registryOf(ag2Metrics{agents}, hubMetrics{h}),
		Upgrade: agents,
		Ready:   []server.Check{journalReady(engine)},
		Drain:   func(ctx context.Context) { _ = agents.Close(ctx) },
	}
	closeAll := func() error {
		err := agents.Close(context.Background())
		h.Close()
		return err
	}
	return deps, closeAll, nil
}

// backupOf streams a backup of an engine that can make one.
func backupOf(engine journal.Engine) func(context.Context, io.Writer) error {
	store, ok := engine.(*disk.Engine)
	if !ok {
		return nil
	}
	return func(ctx context.Context, w io.Writer) error {
		_, err := store.Backup(ctx, w, nil)
		return err
	}
}

func hubOptions(cfg config.Config, keys *access.Keys, log *slog.Logger) hub.Options {
	return hub.Options{
		Adapters:          adapter.All(),
		Auth:              identity.NewAuthRegistry(allowNone(cfg.AG2.AllowNone, keys), agentKeys(keys)),
		Log:               log,
		TrustClients:      cfg.AG2.TrustClients,
		InviteAckTimeout:  cfg.Hub.InviteAckTimeout,
		TTLSweep:          offIfZero(cfg.Hub.TTLSweepInterval),
		ExpectationSweep:  offIfZero(cfg.Hub.ExpectationSweepInterval),
		RestartGrace:      offIfZero(cfg.Hub.RestartGrace),
		HoldFor:           cfg.Hub.HoldFor,
		IdempotencyWindow: cfg.Hub.IdempotencyWindow,
		EvictAfter:        cfg.Hub.EvictAfter,
		Limits: hub.Limits{
			Agents:         cfg.Limits.Agents,
			Participants:   cfg.Limits.Participants,
			EventBytes:     int(cfg.Limits.Event),
			RecordBytes:    int(cfg.Limits.Record),
			InFlight:       cfg.Limits.InFlight,
			LoadedChannels: cfg.Limits.LoadedChannels,
			Replay:         cfg.Limits.Replay,
			Held:           cfg.Limits.Held,
			Inbox:          cfg.Limits.Inbox,
			Deadlines:      cfg.Limits.Deadlines,
			OpenTasks:      cfg.Limits.OpenTasks,
		},
	}
}

// offIfZero turns a setting's zero, which switches a sweep off, into the hub's
// own word for that: its zero is the default.
func offIfZero[T ~int64](interval T) T {
	if interval == 0 {
		return -1
	}
	return interval
}

// allowNone accepts the scheme none from where the setting says, and for names
// that no key was made for.
func allowNone(from string, keys *access.Keys) identity.None {
	return identity.None{Keyed: keys.HasAgent, Allow: func(ctx context.Context) bool {
		switch from {
		case config.NoneAlways:
			return true
		case config.NoneNever:
			return false
		}
		return identity.PeerOf(ctx).Loopback
	}}
}

func agentKeys(keys *access.Keys) identity.Authenticator {
	return identity.NewAPIKeyStore(func(name, token string) (known, ok bool) {
		return keys.HasAgent(name), keys.VerifyAgent(name, token)
	})
}

// proofs watches over what proves the identities of one connection: a key until
// it is revoked, and no key until one is made for the name. The connection
// takes of the share of the last key that was shown.
func proofs(keys *access.Keys, seat access.Seat) ag2.Prove {
	return func(name, scheme string, claim []byte) (func() bool, error) {
		if scheme != identity.SchemeAPIKey {
			return func() bool { return !keys.HasAgent(name) }, nil
		}
		token, _ := identity.Token(claim)
		key, ok := keys.Resolve(token)
		if !ok {
			return nil, fault.New(fault.AuthFailed, "the key of %q was revoked", name)
		}
		return func() bool { return keys.Stands(access.Principal{Role: key.Role, Key: key.ID}) }, seat(key.ID)
	}
}

func serveAG2(cfg config.Config, h *hub.Hub, keys *access.Keys, log *slog.Logger) (*ag2.Server, error) {
	mirror, err := ag2.ParseMirror(cfg.AG2.MirrorTasks)
	if err != nil {
		return nil, err
	}
	return ag2.New(ag2.Config{
		Hub:          h,
		TrustClients: cfg.AG2.TrustClients,
		MirrorTasks:  mirror,
		DebugFrames:  cfg.AG2.DebugFrames,
		Operator: func(r *http.Request) func() bool {
			who := access.From(r.Context())
			if !who.Has(access.Operator) {
				return nil
			}
			return func() bool { return keys.Stands(who) }
		},
		Prove: func(r *http.Request) ag2.Prove { return proofs(keys, access.SeatOf(r.Context())) },
		Strangers: func(p identity.Peer) bool {
			return allowNone(cfg.AG2.AllowNone, keys).Allow(identity.WithPeer(context.Background(), p))
		},
		Peer: func(r *http.Request) identity.Peer {
			return identity.Peer{Address: r.RemoteAddr, Loopback: access.From(r.Context()).Loopback}
		},
		Log: log,
		Limits: ag2.Limits{
			Limits: wsconn.Limits{
				Connections: cfg.AG2.Limits.Connections,
				FrameBytes:  int(cfg.AG2.Limits.FrameBytes),
				QueueBytes:  int(cfg.AG2.Limits.QueueBytes),
				Handshake:   cfg.AG2.Limits.Handshake,
				Message:     cfg.AG2.Limits.Message,
				Ping:        cfg.AG2.Limits.Ping,
				Pong:        cfg.AG2.Limits.Pong,
				Write:       cfg.AG2.Limits.Write,
			},
			Requests:   cfg.AG2.Limits.Requests,
			Openings:   cfg.AG2.Limits.Openings,
			Identities: cfg.AG2.Limits.Identities,
		},
	})
}
