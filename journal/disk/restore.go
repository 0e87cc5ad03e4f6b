package disk

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// Progress is told how far a long task is. Total is 0 while it is not known.
type Progress func(what string, done, total int64)

func (p Progress) tell(what string, done, total int64) {
	if p != nil {
		p(what, done, total)
	}
}

// Restore makes a data folder from a checkpoint, in a new epoch. The folder
// must not exist; the checkpoint is only read. A checkpoint that is damaged or
// incomplete is refused before the folder is made.
func Restore(checkpoint, dir string, opts Options, progress Progress) error {
	opts = opts.WithDefaults()
	fs := opts.FS
	if !storefs.Exists(fs, fs.PathJoin(checkpoint, checkpointFile)) {
		return fmt.Errorf("%s is not a checkpoint: it has no file %s", checkpoint, checkpointFile)
	}
	if err := checkFormat(fs, checkpoint); err != nil {
		return err
	}
	if err := vacant(fs, dir, "restore"); err != nil {
		return err
	}
	if err := verifySums(fs, checkpoint, progress); err != nil {
		return fmt.Errorf("backup %s: %w", checkpoint, err)
	}
	if err := verifyPlace(checkpoint, opts); err != nil {
		return fmt.Errorf("backup %s: %w", checkpoint, err)
	}
	if err := begin(fs, dir, "restore"); err != nil {
		return err
	}
	if err := copyDir(fs, fs.PathJoin(checkpoint, storeDir), fs.PathJoin(dir, unfinishedStore), progress); err != nil {
		return err
	}
	_, err := guarded(dir, opts, func(opts Options) (struct{}, error) { return struct{}{}, adopt(dir, opts, 0) })
	return err
}

// readCheckpoint reads the position that a checkpoint was made at.
func readCheckpoint(fs vfs.FS, dir string) (mark, error) {
	text, err := storefs.ReadFile(fs, fs.PathJoin(dir, checkpointFile))
	var at journal.ShardPosition
	if err == nil {
		at, err = journal.ParseShardPosition(strings.TrimSuffix(string(text), "\n"))
	}
	if err != nil {
		return mark{}, layout.Damaged(err, "%s", checkpointFile)
	}
	return mark{epoch: at.Epoch, offset: at.Offset}, nil
}

// verifyPlace compares what a checkpoint holds with the position that it was
// made at. Pebble takes damaged logs and a damaged MANIFEST for shorter ones.
func verifyPlace(checkpoint string, opts Options) error {
	want, err := readCheckpoint(opts.FS, checkpoint)
	if err != nil {
		return err
	}
	opts.FS = readOnlyFS{opts.FS}
	fs := opts.FS
	found, err := survey(checkpoint, opts)
	if err != nil {
		return err
	}
	if found.epoch != want.epoch || found.offset != want.offset {
		return name(layout.Damaged(fmt.Errorf("the store ends at offset %d of epoch %d, %s says %d of %d",
			found.offset, found.epoch, checkpointFile, want.offset, want.epoch), "the store"), fs, checkpoint, found.logs)
	}
	for _, w := range found.logs {
		cut, _, err := w.unused(fs)
		if err != nil {
			return err
		}
		if cut != nil {
			return layout.Damaged(fmt.Errorf("unreadable at offset %d", cut.Offset), "%s", cut.File)
		}
	}
	return nil
}

// adopt gives the unfinished store of a folder a new epoch, above a given one,
// and makes it the folder's store.
func adopt(dir string, opts Options, above uint64) error {
	fs := opts.FS
	db, err := pebble.Open(fs.PathJoin(dir, unfinishedStore), opts.quietly())
	if err != nil {
		return err
	}
	epoch, offset, err := readPlace(db)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	epoch = max(epoch, above) + 1
	b := db.NewBatch()
	_ = b.Set(layout.KeyEpoch, layout.AppendNumber(nil, layout.KeyEpoch, epoch), nil)
	err = db.ApplyNoSyncWait(b, pebble.Sync)
	if err == nil {
		err = b.SyncWait()
	}
	if err := errors.Join(err, db.Flush(), db.Close()); err != nil {
		return err
	}
	if err := createMark(fs, dir, epoch, offset); err != nil {
		return err
	}
	return finish(fs, dir)
}

// copyDir copies the files of a folder and syncs them.
func copyDir(fs vfs.FS, from, to string, progress Progress) error {
	names, err := fs.List(from)
	if err != nil {
		return err
	}
	for i, name := range names {
		progress.tell("copying "+name, int64(i), int64(len(names)))
		if err := copyFile(fs, fs.PathJoin(from, name), fs.PathJoin(to, name)); err != nil {
			return fmt.Errorf("copying %s: %w", name, err)
		}
	}
	progress.tell("copied", int64(len(names)), int64(len(names)))
	return storefs.SyncDir(fs, to)
}

func copyFile(fs vfs.FS, from, to string) error {
	src, err := fs.Open(from)
	if err != nil {
		return err
	}
	dst, err := fs.Create(to, "journal-restore")
	if err != nil {
		return errors.Join(err, src.Close())
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Sync(), dst.Close(), src.Close())
}
