package store

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// NeedsCreating reports whether a folder has to be created. It returns an error if
// the folder has lost files: FORMAT is written before the store gets its name.
func NeedsCreating(fs vfs.FS, dir string) (bool, error) {
	if err := datadir.CheckFinished(fs, dir); err != nil {
		return false, err
	}
	store := storefs.Exists(fs, fs.PathJoin(dir, datadir.StoreDir))
	format := storefs.Exists(fs, fs.PathJoin(dir, datadir.FormatFile))
	unfinished := storefs.Exists(fs, fs.PathJoin(dir, datadir.StoreDir+".new"))
	switch {
	case store && !format:
		return false, layout.Damaged(errors.New("it is missing"), "%s", datadir.FormatFile)
	case !store && format && !unfinished:
		return false, layout.Damaged(errors.New("it is missing"), "%s", datadir.StoreDir)
	}
	return !store, nil
}

// Create makes an empty store. It makes it under another name, so that a crash in
// between leaves nothing that looks like a store. Pebble is opened twice: the log of
// a new store's first open has no sync chunks, without which damage in the middle of
// the log looks like its end.
func Create(dir string, opts Options) error {
	fs := opts.FS
	unfinished := fs.PathJoin(dir, datadir.StoreDir+".new")
	if err := fs.RemoveAll(unfinished); err != nil {
		return err
	}
	if err := fs.MkdirAll(unfinished, 0o750); err != nil {
		return err
	}
	for range 2 {
		db, err := pebble.Open(unfinished, opts.Quietly())
		if err != nil {
			return err
		}
		b := db.NewBatch()
		_ = b.Set(layout.KeyEpoch, layout.AppendNumber(nil, layout.KeyEpoch, 1), nil)
		_ = b.Set(layout.KeyIndex, layout.AppendNumber(nil, layout.KeyIndex, 1), nil)
		if err := errors.Join(db.Apply(b, pebble.Sync), db.Flush(), db.Close()); err != nil {
			return err
		}
	}
	if err := datadir.CreateMark(fs, dir, 1, 0); err != nil {
		return err
	}
	if err := storefs.WriteFile(fs, dir, datadir.FormatFile, datadir.FormatText(datadir.FormatVersion)); err != nil {
		return err
	}
	if err := fs.Rename(unfinished, fs.PathJoin(dir, datadir.StoreDir)); err != nil {
		return err
	}
	return storefs.SyncDir(fs, dir)
}
