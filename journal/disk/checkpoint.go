package disk

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/backup"
	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// Checkpoint implements journal.Engine. The copy is made between two groups,
// so that it holds exactly what is durable at that moment; tables are linked,
// not copied.
func (e *Engine) Checkpoint(ctx context.Context, dir string) (journal.StorePosition, error) {
	at, err := e.checkpoint(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := backup.WriteSums(e.opts.FS, dir); err != nil {
		return nil, errors.Join(err, e.opts.FS.RemoveAll(dir))
	}
	return at, nil
}

// checkpoint makes a copy without checksums.
func (e *Engine) checkpoint(ctx context.Context, dir string) (journal.StorePosition, error) {
	fs := e.opts.FS
	var at journal.ShardPosition
	made := false                                       // known to the committer
	remove := func() error { return fs.RemoveAll(dir) } // half a copy is none
	_, err := e.betweenGroups(ctx, false, func() error {
		if storefs.Exists(fs, dir) {
			return fmt.Errorf("checkpoint: %s exists already", dir)
		}
		made = true
		e.mu.Lock()
		at = e.book.Position()
		e.mu.Unlock()
		if err := storefs.MakeDir(fs, dir); err != nil {
			return errors.Join(err, remove())
		}
		// Pebble creates the copy through its own file system; nothing is
		// admitted to the log meanwhile but the sync of what is in it.
		err := e.guard.Hand(func() error {
			return e.db.Checkpoint(fs.PathJoin(dir, datadir.StoreDir), pebble.WithFlushedWAL())
		})
		if err != nil {
			return errors.Join(err, remove())
		}
		return nil
	}, func() {
		if made {
			_ = remove()
		}
	})
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		storefs.WriteFile(fs, dir, datadir.FormatFile, datadir.FormatText(datadir.FormatVersion)),
		storefs.WriteFile(fs, dir, backup.CheckpointFile, []byte(at.String()+"\n")),
	)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return journal.StorePosition{at}, nil
}
