package main

import (
	"context"
	"log/slog"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/config"
)

// openDisk opens the embedded engine of a data folder.
func openDisk(cfg config.Data, log *slog.Logger) (journal.Engine, error) {
	if err := checkAlone(cfg.Dir); err != nil {
		return nil, err
	}
	return disk.Open(cfg.Dir, diskOptions(cfg, log))
}

// journalReady fails when the engine accepts no appends.
func journalReady(engine journal.Engine) server.Check {
	return server.Check{Name: "journal", Run: func(context.Context) error { return engine.Health().Err }}
}
