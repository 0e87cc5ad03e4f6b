package disk

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/parley-hub/parley/journal"
)

// checkpointFile marks a folder that is a copy: it is restored, not opened.
const checkpointFile = "CHECKPOINT"

// Checkpoint implements journal.Engine. The copy is made between two groups,
// so that it holds exactly what is durable at that moment; tables are linked,
// not copied.
func (e *Engine) Checkpoint(ctx context.Context, dir string) (journal.WidePosition, error) {
	fs := e.opts.FS
	if exists(fs, dir) {
		return nil, fmt.Errorf("checkpoint: %s exists already", dir)
	}
	var at journal.ShardPosition
	err := e.betweenGroups(ctx, false, func() error {
		e.mu.Lock()
		at = e.book.Position()
		e.mu.Unlock()
		if err := makeDir(fs, dir); err != nil {
			return err
		}
		// Pebble creates the copy through its own file system; nothing is
		// admitted to the log meanwhile but the sync of what is in it.
		return e.guard.hand(func() error {
			return e.db.Checkpoint(fs.PathJoin(dir, storeDir), pebble.WithFlushedWAL())
		})
	})
	if err == nil {
		err = errors.Join(
			writeFile(fs, dir, formatFile, formatText(formatVersion)),
			writeFile(fs, dir, checkpointFile, []byte(at.String()+"\n")),
		)
	}
	if err != nil {
		return nil, errors.Join(err, fs.RemoveAll(dir)) // half a copy is none
	}
	return journal.WidePosition{at}, nil
}
