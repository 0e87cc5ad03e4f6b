package main

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"os"

	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/room"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/dialect/agh/bridge"
	"github.com/parley-hub/parley/dialect/agh/keyring"
	"github.com/parley-hub/parley/dialect/agh/natsbroker"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/answers"
	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
)

// aghAdapters govern the channels of AGH.
func aghAdapters(cfg config.Config) []channel.Adapter {
	set := agh.Section.Of(&cfg)
	return []channel.Adapter{
		room.New(room.Options{MaxPeers: set.Limits.Peers}),
		thread.New(thread.Options{MaxWork: set.Limits.Work}),
		direct.New(direct.Options{MaxWork: set.Limits.Work}),
	}
}

// aghRoles maps roles of keys to roles of the dialect.
var aghRoles = map[access.Role]agh.Role{access.Agent: agh.Agent, access.Reader: agh.Reader, access.Operator: agh.Operator}

func serveAGH(cfg config.Config, h *hub.Hub, keys *access.Keys, budget *answers.Budget, log *slog.Logger) (server.Dialect, error) {
	set := agh.Section.Of(&cfg)
	scan, err := agh.ParseScan(set.SecretScan)
	if err != nil {
		return nil, err
	}
	broker, err := aghBroker(cfg, log)
	if err != nil {
		return nil, err
	}
	ring := keyring.At(cfg.Data.Dir)
	hooks := aghHooks(set.Hooks, log)
	s, err := agh.New(agh.Config{
		Hub:     h,
		Broker:  broker,
		OnEvent: hooks.onEvent(),
		Who: func(r *http.Request) agh.Who {
			who := access.From(r.Context())
			return agh.Who{Role: aghRoles[who.Role], Agent: who.Agent, Key: who.Key}
		},
		Stands:         func(r *http.Request) bool { return keys.Stands(access.From(r.Context())) },
		Log:            log,
		Answers:        budget,
		Disabled:       !set.Enabled,
		GreetInterval:  set.GreetInterval,
		ReplayAge:      set.ReplayAge,
		QueueDepth:     set.QueueDepth,
		DefaultChannel: set.DefaultChannel,
		Strict:         set.Strict,
		LenientWorkIDs: set.LenientWorkIDs,
		SecretScan:     scan,
		V1:             set.V1,
		BridgeAccept:   bridge.Accept(set.Bridge.Accept),
		MaxHops:        cfg.Bridge.MaxHops,
		Key: func(handle string) (*wire.Key, error) {
			key, _, err := ring.Find(handle)
			return key, err
		},
		Limits: agh.Limits{
			Remotes: set.Limits.Remotes, Outbox: set.Limits.Outbox, SubscriptionRate: set.Limits.SubscriptionRate,
			SenderRate: set.Limits.SenderRate, AuditRejects: set.Audit.Rejects,
			Streams: set.Limits.Streams, Write: cfg.Limits.FollowerWrite, KeepAlive: cfg.Limits.KeepAlive,
		},
	})
	if err != nil {
		return nil, errors.Join(err, hooks.close())
	}
	if hooks.Runner == nil {
		return s, nil
	}
	return &aghWithHooks{s, hooks}, nil
}

// natsTokenEnv has the token of an external NATS server, so that it need not be in a
// file or on the command line.
const natsTokenEnv = "PARLEY_NATS_TOKEN"

// aghBroker connects to NATS; nil: it is not configured.
func aghBroker(cfg config.Config, log *slog.Logger) (agh.Broker, error) {
	set := agh.Section.Of(&cfg)
	nats := set.NATS
	switch {
	case !set.Enabled || nats.Listen == "" && nats.URL == "":
		return nil, nil
	case nats.Listen != "" && nats.URL != "":
		return nil, fault.New(fault.Invalid, "agh.nats.listen and agh.nats.url are both set; AGH has one broker")
	case nats.URL != "":
		return natsbroker.Open(natsbroker.Options{URL: nats.URL, Token: os.Getenv(natsTokenEnv), Log: log})
	}
	token, err := natsbroker.Token(cfg.Data.Dir)
	if err != nil {
		return nil, err
	}
	o := natsbroker.Options{Listen: nats.Listen, Token: token, Log: log}
	if cfg.TLS.Cert != "" {
		pair, err := tls.LoadX509KeyPair(cfg.TLS.Cert, cfg.TLS.Key)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "the certificate for NATS cannot be read: %v", err)
		}
		o.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	return natsbroker.Open(o)
}
