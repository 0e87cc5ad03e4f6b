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
	minFree := int64(cfg.MinFree)
	if minFree == 0 {
		minFree = -1 // the engine's own zero means its default
	}
	return disk.Open(cfg.Dir, disk.Options{
		Logger: log, MinFree: minFree, SnapshotBytes: int64(cfg.Snapshots), RecentBytes: int64(cfg.RecentCommits),
	})
}

// journalReady is red when the engine admits no appends.
func journalReady(engine journal.Engine) server.Check {
	return server.Check{Name: "journal", Run: func(context.Context) error { return engine.Health().Err }}
}
