package store

import (
	"encoding/json"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// CUTTING records what is being cut off a log. It is written before the log is cut,
// and removed when the new epoch is durable. Without it, the open after a crash in
// between would find nothing wrong.
const cuttingFile = "CUTTING"

func noteCut(fs vfs.FS, dir string, cut Cut) error {
	text, err := json.Marshal(cut)
	if err != nil {
		return err
	}
	return storefs.WriteFile(fs, dir, cuttingFile, append(text, '\n'))
}

// recallCut adds the cut of an open that did not finish.
func recallCut(fs vfs.FS, dir string, found Recovery) (Recovery, error) {
	path := fs.PathJoin(dir, cuttingFile)
	if !storefs.Exists(fs, path) {
		return found, nil
	}
	text, err := storefs.ReadFile(fs, path)
	if err != nil {
		return found, layout.Damaged(err, "%s", cuttingFile)
	}
	var cut Cut
	if err := json.Unmarshal(text, &cut); err != nil {
		return found, layout.Damaged(err, "%s", cuttingFile)
	}
	found.Lost = true
	if !slices.Contains(found.Cuts, cut) {
		found.Cuts = append(found.Cuts, cut)
	}
	return found, nil
}

// SettleCut removes CUTTING. It is called when positions in the lost part are
// invalid for good.
func SettleCut(fs vfs.FS, dir string) error {
	path := fs.PathJoin(dir, cuttingFile)
	if !storefs.Exists(fs, path) {
		return nil
	}
	if err := fs.Remove(path); err != nil {
		return err
	}
	return storefs.SyncDir(fs, dir)
}
