package repair

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/internal/backup"
	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/store"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// Suffixes of the folders beside a copy's folder.
const (
	takenSuffix  = ".taken"  // a copy of another node that is being taken
	beforeSuffix = ".before" // the copy that was there before, of an earlier epoch
)

// Taken is the complete copy of another node, beside the folder that it will replace.
type Taken struct {
	Place  disk.Place
	Offset uint64

	fs         vfs.FS
	aside, dir string
}

// TakeCopy reads the archive that Backup made of another node's copy, checks it,
// and writes it beside dir. Unlike Restore, it keeps the epoch and the place in the
// log.
func TakeCopy(r io.Reader, dir string, options disk.Options) (*Taken, error) {
	opts := options.Store()
	fs := opts.FS
	t := &Taken{fs: fs, dir: dir, aside: fs.PathJoin(dir) + takenSuffix}
	if err := fs.RemoveAll(t.aside); err != nil {
		return nil, err
	}
	err := backup.Unpack(fs, r, t.aside, nil)
	if err == nil {
		err = datadir.CheckFormat(fs, t.aside)
	}
	if err == nil {
		err = verifyPlace(t.aside, opts)
	}
	if err == nil {
		_, err = store.Guarded(t.aside, opts, func(opts store.Options) (struct{}, error) { return struct{}{}, t.settle(opts) })
	}
	if err != nil {
		return nil, errors.Join(err, t.Discard())
	}
	return t, nil
}

// settle makes a checkpoint a data folder.
func (t *Taken) settle(opts store.Options) error {
	db, err := pebble.Open(t.fs.PathJoin(t.aside, datadir.StoreDir), opts.Quietly())
	if err != nil {
		return err
	}
	epoch, offset, err := store.ReadPlace(db)
	if err == nil {
		t.Offset = offset
		t.Place, err = store.ReadCopyPlace(db)
	}
	if err == nil && (t.Place.Epoch != epoch || t.Place.Seq == 0) {
		err = fmt.Errorf("the store is not the copy of a log")
	}
	if err := errors.Join(err, db.Flush(), db.Close()); err != nil {
		return err
	}
	if err := datadir.CreateMark(t.fs, t.aside, epoch, offset); err != nil {
		return err
	}
	return backup.Strip(t.fs, t.aside)
}

// Discard removes the taken copy.
func (t *Taken) Discard() error { return t.fs.RemoveAll(t.aside) }

// Install replaces the folder, which must not be open, with the taken copy. If keep
// is set, the old folder is kept beside it until the next call that keeps one. After
// a crash there is the old folder, none, or the new one.
func (t *Taken) Install(keep bool) error {
	fs, before := t.fs, t.fs.PathJoin(t.dir)+beforeSuffix
	if keep {
		if err := fs.RemoveAll(before); err != nil {
			return err
		}
		if err := fs.Rename(t.dir, before); err != nil {
			return err
		}
	} else if err := fs.RemoveAll(t.dir); err != nil {
		return err
	}
	if err := fs.Rename(t.aside, t.dir); err != nil {
		return err
	}
	return storefs.SyncDir(fs, fs.PathDir(t.dir))
}
