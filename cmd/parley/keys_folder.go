package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
	"github.com/parley-hub/parley/server/folder"
)

// folderKeys are the keys of a folder that no hub uses.
type folderKeys struct{ keys *access.Keys }

// folderCaller is the caller in the audit for work on a data folder: a user with write
// access to it.
var folderCaller = &hub.Caller{Role: hub.RoleOperator, Connection: "data folder"}

func (f folderKeys) Add(ctx context.Context, role access.Role, agent string) (string, access.Key, error) {
	return f.keys.Add(ctx, role, agent, folderCaller)
}

func (f folderKeys) Give(ctx context.Context, agent, token string) (access.Key, error) {
	return f.keys.Give(ctx, agent, token, folderCaller)
}

func (f folderKeys) List(context.Context) ([]access.Key, error) { return f.keys.List(), nil }

func (f folderKeys) Revoke(ctx context.Context, id string) (access.Key, error) {
	return f.keys.Revoke(ctx, id, folderCaller)
}

// openFolderKeys locks a folder and opens the hub on it for as long as its keys are
// used.
func (a *app) openFolderKeys(ctx context.Context, data config.Data) (_ keyStore, release func() error, err error) {
	held, err := folder.Hold(data.Dir)
	if err != nil {
		return nil, nil, err
	}
	var closing []func() error
	release = func() error {
		var err error
		for i := len(closing) - 1; i >= 0; i-- {
			err = errors.Join(err, closing[i]())
		}
		return err
	}
	closing = append(closing, held.Release)
	engine, err := a.openJournal(data, slog.New(slog.DiscardHandler)) // errors are returned
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	closing = append(closing, engine.Close)
	keys, closeHub, err := openKeys(ctx, engine, data.Dir)
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	closing = append(closing, func() error { closeHub(); return nil })
	return folderKeys{keys}, release, nil
}

// openKeys opens the hub on a journal, for as long as its keys are used.
func openKeys(ctx context.Context, engine journal.Engine, dir string) (_ *access.Keys, closeHub func(), err error) {
	cfg := allSettings.Default()
	cfg.Hub.TTLSweepInterval, cfg.Hub.ExpectationSweepInterval = 0, 0 // there are no connections to end
	keys := access.NewKeys()
	opts := hubOptions(cfg, keys, slog.New(slog.DiscardHandler)) // errors are returned
	if opts.Adapters, err = adapters(cfg); err != nil {
		return nil, nil, err
	}
	h, err := hub.Open(ctx, engine, opts)
	if err != nil {
		return nil, nil, err
	}
	if err := keys.Load(ctx, h, dir); err != nil {
		h.Close()
		return nil, nil, err
	}
	return keys, h.Close, nil
}
