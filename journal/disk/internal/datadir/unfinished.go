package datadir

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// UNFINISHED is in a data dir while a restore or a salvage writes it. Its text
// names the command. Until that ends, the store is named UnfinishedStore.
const (
	unfinishedFile  = "UNFINISHED"
	UnfinishedStore = StoreDir + ".unfinished"
)

// Vacant returns an error if dir exists.
func Vacant(fs vfs.FS, dir, what string) error {
	if storefs.Exists(fs, dir) {
		return fmt.Errorf("%s exists already; %s into a folder that does not", dir, what)
	}
	return nil
}

// Begin makes a folder that cannot be opened before Finish. It makes the folder under
// another name, so that a crash leaves no folder that looks like a new one.
func Begin(fs vfs.FS, dir, what string) error {
	if err := Vacant(fs, dir, what); err != nil {
		return err
	}
	dir = fs.PathJoin(dir) // without a slash at its end
	aside := dir + ".unfinished"
	if storefs.Exists(fs, aside) {
		return fmt.Errorf("%s exists already: it is left of an unfinished %s; remove it and repeat the %s", aside, what, what)
	}
	if err := storefs.MakeDir(fs, fs.PathJoin(aside, UnfinishedStore)); err != nil {
		return err
	}
	if err := storefs.WriteFile(fs, aside, unfinishedFile, []byte(what+"\n")); err != nil {
		return err
	}
	if err := fs.Rename(aside, dir); err != nil {
		return err
	}
	return storefs.SyncDir(fs, fs.PathDir(dir))
}

// Finish makes the unfinished store the store of the folder.
func Finish(fs vfs.FS, dir string) error {
	if err := storefs.WriteFile(fs, dir, FormatFile, FormatText(FormatVersion)); err != nil {
		return err
	}
	if err := fs.Rename(fs.PathJoin(dir, UnfinishedStore), fs.PathJoin(dir, StoreDir)); err != nil {
		return err
	}
	if err := storefs.SyncDir(fs, dir); err != nil {
		return err
	}
	if err := fs.Remove(fs.PathJoin(dir, unfinishedFile)); err != nil {
		return err
	}
	return storefs.SyncDir(fs, dir)
}

// CheckFinished returns an error if a folder is unfinished.
func CheckFinished(fs vfs.FS, dir string) error {
	path := fs.PathJoin(dir, unfinishedFile)
	if !storefs.Exists(fs, path) {
		return nil
	}
	what, err := storefs.ReadFile(fs, path)
	text := strings.TrimSpace(string(what))
	if err != nil || text == "" {
		text = "restore"
	}
	return errors.Join(fmt.Errorf("the folder is of an unfinished %s: remove it and repeat the %s", text, text), err)
}
