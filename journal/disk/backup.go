package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/backup"
)

// backupPrefix names the checkpoints that backups are made from.
const backupPrefix = "backup-"

// removeBackups removes the checkpoints left by a process that was killed during a backup.
func removeBackups(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, backupPrefix) {
			if err := fs.RemoveAll(fs.PathJoin(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Backup writes an archive of a live engine to w and returns the position of the
// backup. While it runs, the checkpoint that the archive is made from is in the
// data folder.
func (e *Engine) Backup(ctx context.Context, w io.Writer, progress Progress) (at journal.StorePosition, err error) {
	fs := e.opts.FS
	dir := fs.PathJoin(e.dir, fmt.Sprintf("%s%d", backupPrefix, e.backups.Add(1)))
	at, err = e.checkpoint(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, fs.RemoveAll(dir)) }()
	return at, backup.WriteArchive(ctx, fs, dir, w, progress)
}
