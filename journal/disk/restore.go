package disk

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Progress is told how far a long task is. Total is 0 while it is not known.
type Progress func(what string, done, total int64)

func (p Progress) tell(what string, done, total int64) {
	if p != nil {
		p(what, done, total)
	}
}

// Restore makes a data folder from a checkpoint, in a new epoch. The folder
// must not exist; the checkpoint is only read.
func Restore(checkpoint, dir string, opts Options, progress Progress) error {
	opts = opts.WithDefaults()
	fs := opts.FS
	if !exists(fs, fs.PathJoin(checkpoint, checkpointFile)) {
		return fmt.Errorf("%s is not a checkpoint: it has no file %s", checkpoint, checkpointFile)
	}
	if err := checkFormat(fs, checkpoint); err != nil {
		return err
	}
	if exists(fs, dir) {
		return fmt.Errorf("%s exists already; restore into a folder that does not", dir)
	}
	unfinished := fs.PathJoin(dir, storeDir+".new")
	if err := makeDir(fs, unfinished); err != nil {
		return err
	}
	if err := copyDir(fs, fs.PathJoin(checkpoint, storeDir), unfinished, progress); err != nil {
		return err
	}
	return adopt(dir, opts, 0)
}

// adopt gives the unfinished store of a folder a new epoch, above a given one,
// and makes it the folder's store.
func adopt(dir string, opts Options, above uint64) error {
	fs := opts.FS
	unfinished := fs.PathJoin(dir, storeDir+".new")
	db, err := pebble.Open(unfinished, opts.quietly())
	if err != nil {
		return err
	}
	epoch, offset, err := readPlace(db)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	epoch = max(epoch, above) + 1
	b := db.NewBatch()
	_ = b.Set(keyEpoch, appendNumber(nil, keyEpoch, epoch), nil)
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
	if err := writeFile(fs, dir, formatFile, formatText(formatVersion)); err != nil {
		return err
	}
	if err := fs.Rename(unfinished, fs.PathJoin(dir, storeDir)); err != nil {
		return err
	}
	return syncDir(fs, dir)
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
	return syncDir(fs, to)
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
