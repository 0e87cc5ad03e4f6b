package disk

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// UNFINISHED is in a data dir while a restore or a salvage writes it. Its text
// names the command. Until then the store has another name.
const (
	unfinishedFile  = "UNFINISHED"
	unfinishedStore = storeDir + ".unfinished"
)

// vacant returns an error when dir exists.
func vacant(fs vfs.FS, dir, what string) error {
	if storefs.Exists(fs, dir) {
		return fmt.Errorf("%s exists already; %s into a folder that does not", dir, what)
	}
	return nil
}

// begin makes a folder that nothing opens before finish. It is made under
// another name, so that a crash leaves no folder that looks like a new one.
func begin(fs vfs.FS, dir, what string) error {
	if err := vacant(fs, dir, what); err != nil {
		return err
	}
	dir = fs.PathJoin(dir) // without a slash at its end
	aside := dir + ".unfinished"
	if storefs.Exists(fs, aside) {
		return fmt.Errorf("%s exists already: it is left of an unfinished %s; remove it and repeat the %s", aside, what, what)
	}
	if err := storefs.MakeDir(fs, fs.PathJoin(aside, unfinishedStore)); err != nil {
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

// finish makes the store that was built the folder's.
func finish(fs vfs.FS, dir string) error {
	if err := storefs.WriteFile(fs, dir, formatFile, formatText(formatVersion)); err != nil {
		return err
	}
	if err := fs.Rename(fs.PathJoin(dir, unfinishedStore), fs.PathJoin(dir, storeDir)); err != nil {
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

// checkFinished refuses a folder that is not whole.
func checkFinished(fs vfs.FS, dir string) error {
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
