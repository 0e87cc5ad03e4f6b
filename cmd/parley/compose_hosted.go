package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/server/chat"
	"github.com/parley-hub/parley/server/config"
	"github.com/parley-hub/parley/server/hosted"
)

// hostOf runs agent definitions in this process, if agents.hosted says so. The
// providers' keys come from the environment of the hub.
func hostOf(cfg config.Config, h *hub.Hub, log *slog.Logger) *hosted.Host {
	if !cfg.Agents.Hosted {
		return nil
	}
	environ := os.Environ()
	return hosted.New(hosted.Config{
		Open: func(ctx context.Context, name, endpoint string) (runner.Provider, runner.Secret, error) {
			flags := &providerFlags{name: name, baseURL: endpoint}
			key, err := (&app{environ: environ}).providerKey(flags)
			if err != nil {
				return nil, runner.Secret{}, fault.New(fault.Invalid, "the hub cannot ask the provider %.100q: %v", name, err)
			}
			p, err := flags.open(ctx, key)
			return p, key, err
		},
		Ledger: func(definition string) runner.Ledger { return spending{h, definition} },
		Runs:   cfg.Agents.Runs, Tokens: int64(cfg.Agents.Tokens), Log: log,
	})
}

// definitions are where agent definitions are stored.
type definitions interface {
	Definition(ctx context.Context, id string) (wire.StoredAgent, error)
}

// hostedChats finds the definitions that chat sessions may talk to.
func hostedChats(host *hosted.Host, all dialects) func(ctx context.Context, agent string) (chat.Hosted, bool, error) {
	if host == nil {
		return nil
	}
	return func(ctx context.Context, agent string) (chat.Hosted, bool, error) {
		for _, d := range all {
			stored, ok := d.(definitions)
			if !ok {
				continue
			}
			a, err := stored.Definition(ctx, agent)
			if fault.CodeOf(err) == fault.NotFound {
				continue
			}
			return host.Chat(a), err == nil, err
		}
		return nil, false, nil
	}
}

// spendingKind is the kind of the documents that say what definitions have spent.
const spendingKind = "agent-budget"

// spending keeps what a definition has spent as a document of the hub.
type spending struct {
	hub        *hub.Hub
	definition string
}

// Load reads the document; where there is none nothing was spent.
func (s spending) Load(ctx context.Context) (spent runner.Spent, err error) {
	d, err := s.hub.Document(ctx, spendingKind, s.definition)
	if fault.CodeOf(err) == fault.NotFound {
		return spent, nil
	}
	if err == nil {
		err = json.Unmarshal(d.Data, &spent)
	}
	return spent, err
}

// Save replaces the document.
func (s spending) Save(ctx context.Context, spent runner.Spent) error {
	data, err := json.Marshal(spent)
	if err == nil {
		_, err = s.hub.PutDocument(ctx, spendingKind, s.definition, data, nil)
	}
	return err
}
