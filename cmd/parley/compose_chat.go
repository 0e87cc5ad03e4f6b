package main

import (
	"context"
	"log/slog"
	"sync"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/server/chat"
	"github.com/parley-hub/parley/server/config"
)

// chats makes the chat service, which continues the runs of an earlier process.
func chats(ctx context.Context, cfg config.Config, h *hub.Hub, hosted func(context.Context, string) (chat.Hosted, bool, error), log *slog.Logger) (*chat.Service, error) {
	set := chat.Section.Of(&cfg)
	service := chat.New(chat.Config{
		Store: chat.NewStore(chat.StoreConfig{
			Hub: h, Sessions: set.Sessions, Event: int(cfg.Limits.Event), Read: int(cfg.Limits.View),
			Writer: func(_ context.Context, owner transcript.Owner) (string, error) {
				p, err := h.AgentByID(owner.Key)
				if err != nil {
					return "", err
				}
				return p.ID(), nil
			},
		}),
		Hosted: hosted, Runs: set.Runs, Timeout: set.Timeout, Log: log,
	})
	if err := service.Resume(ctx); err != nil {
		service.Close()
		return nil, err
	}
	return service, nil
}

// chatUser returns a function for the identity that owns an operator's sessions. It is
// registered at first use, so that the name cannot be taken without its key.
func chatUser(cfg config.Config, h *hub.Hub) func(ctx context.Context) (string, error) {
	name := chat.Section.Of(&cfg).User
	var one sync.Mutex
	return func(ctx context.Context) (string, error) {
		one.Lock()
		defer one.Unlock()
		if id, ok := h.FindAgent(name); ok {
			return id, nil
		}
		p, err := h.Register(ctx, hub.Registration{Proved: true, Passport: &identity.Passport{
			Name: name, Kind: identity.Human, Auth: identity.Auth{Scheme: identity.SchemeAPIKey},
		}})
		if err == nil {
			return p.ID(), nil
		}
		if id, ok := h.FindAgent(name); ok { // another caller was first
			return id, nil
		}
		return "", fault.Wrap(fault.CodeOf(err), err, "the human %q (chat.user) cannot be registered: %v", name, err)
	}
}
