package backup

import (
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// CheckpointFile marks a folder that is a copy: it is restored, not opened.
const CheckpointFile = "CHECKPOINT"

// ReadCheckpoint reads the position that a checkpoint was made at.
func ReadCheckpoint(fs vfs.FS, dir string) (datadir.Mark, error) {
	text, err := storefs.ReadFile(fs, fs.PathJoin(dir, CheckpointFile))
	var at journal.ShardPosition
	if err == nil {
		at, err = journal.ParseShardPosition(strings.TrimSuffix(string(text), "\n"))
	}
	if err != nil {
		return datadir.Mark{}, layout.Damaged(err, "%s", CheckpointFile)
	}
	return datadir.Mark{Epoch: at.Epoch, Offset: at.Offset}, nil
}

// Strip removes the files that make a folder a checkpoint.
func Strip(fs vfs.FS, dir string) error {
	for _, name := range []string{CheckpointFile, sumsFile} {
		if err := fs.Remove(fs.PathJoin(dir, name)); err != nil {
			return err
		}
	}
	return storefs.SyncDir(fs, dir)
}
