package repair

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/internal/backup"
	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/store"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// Unpack writes an archive made by Engine.Backup to a folder, which must not exist,
// as a checkpoint for Restore. An incomplete stream leaves a folder that Restore
// refuses.
func Unpack(r io.Reader, dir string, options disk.Options, progress backup.Progress) error {
	return backup.Unpack(options.Store().FS, r, dir, progress)
}

// Restore makes a data folder from a checkpoint, in a new epoch. The folder
// must not exist; the checkpoint is only read. A checkpoint that is damaged or
// incomplete is refused before the folder is made.
func Restore(checkpoint, dir string, options disk.Options, progress backup.Progress) error {
	opts := options.Store()
	fs := opts.FS
	if err := datadir.MayRead(fs, checkpoint); err != nil {
		return err
	}
	if !storefs.Exists(fs, fs.PathJoin(checkpoint, backup.CheckpointFile)) {
		return fmt.Errorf("%s is not a checkpoint: it has no file %s", checkpoint, backup.CheckpointFile)
	}
	if err := datadir.CheckFormat(fs, checkpoint); err != nil {
		return err
	}
	if err := datadir.Vacant(fs, dir, "restore"); err != nil {
		return err
	}
	if err := backup.VerifySums(fs, checkpoint, progress); err != nil {
		return fmt.Errorf("backup %s: %w", checkpoint, err)
	}
	if err := verifyPlace(checkpoint, opts); err != nil {
		return fmt.Errorf("backup %s: %w", checkpoint, err)
	}
	if err := verifyWithoutSums(checkpoint, opts, progress); err != nil {
		return fmt.Errorf("backup %s: %w", checkpoint, err)
	}
	if err := datadir.Begin(fs, dir, "restore"); err != nil {
		return err
	}
	if err := copyDir(fs, fs.PathJoin(checkpoint, datadir.StoreDir), fs.PathJoin(dir, datadir.UnfinishedStore), progress); err != nil {
		return err
	}
	_, err := store.Guarded(dir, opts, func(opts store.Options) (struct{}, error) { return struct{}{}, adopt(dir, opts, 0) })
	return err
}

// verifyPlace compares the contents of a checkpoint with the position that it was
// made at, because Pebble treats damaged logs and a damaged MANIFEST as shorter ones.
func verifyPlace(checkpoint string, opts store.Options) error {
	want, err := backup.ReadCheckpoint(opts.FS, checkpoint)
	if err != nil {
		return err
	}
	opts.FS = datadir.ReadOnlyFS{FS: opts.FS}
	fs := opts.FS
	found, err := store.Survey(checkpoint, opts)
	if err != nil {
		return err
	}
	if found.Epoch != want.Epoch || found.Offset != want.Offset {
		return store.NameFile(layout.Damaged(fmt.Errorf("the store ends at offset %d of epoch %d, %s says %d of %d",
			found.Offset, found.Epoch, backup.CheckpointFile, want.Offset, want.Epoch), "the store"), fs, checkpoint, found.Logs)
	}
	for _, w := range found.Logs {
		cut, _, err := w.Unused(fs)
		if err != nil {
			return err
		}
		if cut != nil {
			return layout.Damaged(fmt.Errorf("unreadable at offset %d", cut.Offset), "%s", cut.File)
		}
	}
	return nil
}

// verifyWithoutSums reads every table of a backup without SUMS, which an older version
// made. SUMS of newer backups were compared before.
func verifyWithoutSums(checkpoint string, opts store.Options, progress backup.Progress) error {
	fs := opts.FS
	if backup.HasSums(fs, checkpoint) {
		return nil
	}
	dir := fs.PathJoin(checkpoint, datadir.StoreDir)
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for i, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		progress.Tell("verifying "+name, int64(i), int64(len(names)))
		if err := verifyTable(fs, fs.PathJoin(dir, name), opts); err != nil {
			return layout.Damaged(err, "%s", name)
		}
	}
	return nil
}

// adopt gives the unfinished store of a folder a new epoch, higher than above, and
// makes it the folder's store.
func adopt(dir string, opts store.Options, above uint64) error {
	fs := opts.FS
	p := opts.Quietly()
	p.DisableAutomaticCompactions = true
	db, err := pebble.Open(fs.PathJoin(dir, datadir.UnfinishedStore), p)
	if err != nil {
		return err
	}
	epoch, offset, err := store.ReadPlace(db)
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
	if err := datadir.CreateMark(fs, dir, epoch, offset); err != nil {
		return err
	}
	return datadir.Finish(fs, dir)
}

// copyDir copies the files of a folder and syncs them.
func copyDir(fs vfs.FS, from, to string, progress backup.Progress) error {
	names, err := fs.List(from)
	if err != nil {
		return err
	}
	for i, name := range names {
		progress.Tell("copying "+name, int64(i), int64(len(names)))
		if err := copyFile(fs, fs.PathJoin(from, name), fs.PathJoin(to, name)); err != nil {
			return fmt.Errorf("copying %s: %w", name, err)
		}
	}
	progress.Tell("copied", int64(len(names)), int64(len(names)))
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
