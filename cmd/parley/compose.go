package main

import (
	"context"
	"log/slog"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
)

// compose puts the hub and its dialects on the journal, and says what the
// server serves. The function it returns closes what it opened.
func compose(_ context.Context, _ config.Config, engine journal.Engine, keys *access.Keys, log *slog.Logger) (server.Deps, func() error, error) {
	return server.Deps{
		Keys:    keys,
		Log:     log,
		Version: thisBuild().Version,
		Ready:   []server.Check{journalReady(engine)},
	}, func() error { return nil }, nil
}
