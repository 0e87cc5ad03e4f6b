package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

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
	if err := e.SumCheckpoint(dir); err != nil {
		return nil, errors.Join(err, e.opts.FS.RemoveAll(dir))
	}
	return at, nil
}

// checkpoint makes a checkpoint without checksums.
func (e *Engine) checkpoint(ctx context.Context, dir string) (journal.StorePosition, error) {
	var at journal.ShardPosition
	made := false // known to the committer
	_, err := e.betweenGroups(ctx, false, func() (err error) {
		at, made, err = e.checkpointNow(dir)
		return err
	}, func() {
		if made {
			_ = e.opts.FS.RemoveAll(dir) // a partial copy is useless
		}
	})
	if err != nil {
		return nil, err
	}
	return journal.StorePosition{at}, e.describeCheckpoint(dir, at)
}

// checkpointNow makes the files of a checkpoint. It runs on the committer while
// nothing is in flight. made reports whether there are files to remove on failure.
func (e *Engine) checkpointNow(dir string) (at journal.ShardPosition, made bool, err error) {
	fs := e.opts.FS
	if storefs.Exists(fs, dir) {
		return at, false, fmt.Errorf("checkpoint: %s exists already", dir)
	}
	e.mu.Lock()
	at = e.book.Position()
	e.mu.Unlock()
	if err := storefs.MakeDir(fs, dir); err != nil {
		return at, true, errors.Join(err, fs.RemoveAll(dir))
	}
	// Pebble creates the copy through its own file system. Meanwhile the
	// guard admits only the sync of what is already in the log.
	err = e.guard.Hand(func() error {
		return e.db.Checkpoint(fs.PathJoin(dir, datadir.StoreDir), pebble.WithFlushedWAL())
	})
	if err != nil {
		return at, true, errors.Join(err, fs.RemoveAll(dir))
	}
	return at, true, nil
}

// describeCheckpoint adds the files that describe a checkpoint.
func (e *Engine) describeCheckpoint(dir string, at journal.ShardPosition) error {
	fs := e.opts.FS
	err := errors.Join(
		storefs.WriteFile(fs, dir, datadir.FormatFile, datadir.FormatText(datadir.FormatVersion)),
		storefs.WriteFile(fs, dir, backup.CheckpointFile, []byte(at.String()+"\n")),
	)
	if err != nil {
		return errors.Join(err, fs.RemoveAll(dir))
	}
	return nil
}

// Checkpoints makes a checkpoint of each of several copies at one moment, at which
// nothing is in flight in any of them. The folders in dirs must not exist. If it
// fails, it removes what it made.
func Checkpoints(ctx context.Context, copies []*Copy, dirs []string) (_ journal.StorePosition, err error) {
	at := make(journal.StorePosition, len(copies))
	defer func() {
		for i, c := range copies {
			if err != nil && !at[i].IsZero() {
				err = errors.Join(err, c.opts.FS.RemoveAll(dirs[i]))
			}
		}
	}()
	var mu sync.Mutex // a task that outlives ctx does nothing
	over := false
	hold := func() error {
		mu.Lock()
		defer mu.Unlock()
		for i, c := range copies {
			if over {
				return context.Cause(ctx)
			}
			position, _, err := c.checkpointNow(dirs[i])
			if err != nil {
				return err
			}
			at[i] = position
		}
		return nil
	}
	for _, c := range copies { // the committer of each waits until all of them do
		inner := hold
		hold = func() error { return c.Exclusively(ctx, inner) }
	}
	err = hold()
	mu.Lock()
	over = true
	mu.Unlock()
	if err != nil {
		return nil, err
	}
	for i, c := range copies {
		if err := c.describeCheckpoint(dirs[i], at[i]); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// WriteCheckpoint writes a checkpoint as an archive, as Backup does.
func (e *Engine) WriteCheckpoint(ctx context.Context, dir string, w io.Writer) error {
	return backup.WriteArchive(ctx, e.opts.FS, dir, w, nil)
}

// SumCheckpoint adds checksums to a checkpoint.
func (e *Engine) SumCheckpoint(dir string) error { return backup.WriteSums(e.opts.FS, dir) }
