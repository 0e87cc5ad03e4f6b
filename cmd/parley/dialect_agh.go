package main

import (
	"log/slog"
	"net/http"

	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/room"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
)

// aghAdapters govern the channels of AGH.
func aghAdapters(cfg config.Config) []channel.Adapter {
	return []channel.Adapter{
		room.New(room.Options{MaxPeers: cfg.AGH.Limits.Peers}),
		thread.New(thread.Options{MaxWork: cfg.AGH.Limits.Work}),
		direct.New(direct.Options{MaxWork: cfg.AGH.Limits.Work}),
	}
}

// aghRoles are the roles of the dialect, by those of keys.
var aghRoles = map[access.Role]agh.Role{access.Agent: agh.Agent, access.Reader: agh.Reader, access.Operator: agh.Operator}

func serveAGH(cfg config.Config, h *hub.Hub, _ *access.Keys, log *slog.Logger) (server.Dialect, error) {
	scan, err := agh.ParseScan(cfg.AGH.SecretScan)
	if err != nil {
		return nil, err
	}
	return agh.New(agh.Config{
		Hub: h,
		Who: func(r *http.Request) agh.Who {
			who := access.From(r.Context())
			return agh.Who{Role: aghRoles[who.Role], Agent: who.Agent}
		},
		Log:            log,
		Disabled:       !cfg.AGH.Enabled,
		GreetInterval:  cfg.AGH.GreetInterval,
		ReplayAge:      cfg.AGH.ReplayAge,
		QueueDepth:     cfg.AGH.QueueDepth,
		DefaultChannel: cfg.AGH.DefaultChannel,
		Strict:         cfg.AGH.Strict,
		LenientWorkIDs: cfg.AGH.LenientWorkIDs,
		SecretScan:     scan,
	})
}
