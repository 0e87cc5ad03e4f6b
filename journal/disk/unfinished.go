package disk

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// UNFINISHED is in a folder that a restore or a salvage makes until it is whole.
// Its text is what makes it. The store has another name meanwhile.
const (
	unfinishedFile  = "UNFINISHED"
	unfinishedStore = storeDir + ".unfinished"
)

// vacant refuses to make a folder where there is one.
func vacant(fs vfs.FS, dir, what string) error {
	if exists(fs, dir) {
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
	if exists(fs, aside) {
		return fmt.Errorf("%s exists already: it is left of an unfinished %s; remove it and repeat the %s", aside, what, what)
	}
	if err := makeDir(fs, fs.PathJoin(aside, unfinishedStore)); err != nil {
		return err
	}
	if err := writeFile(fs, aside, unfinishedFile, []byte(what+"\n")); err != nil {
		return err
	}
	if err := fs.Rename(aside, dir); err != nil {
		return err
	}
	return syncDir(fs, fs.PathDir(dir))
}

// finish makes the store that was built the folder's.
func finish(fs vfs.FS, dir string) error {
	if err := writeFile(fs, dir, formatFile, formatText(formatVersion)); err != nil {
		return err
	}
	if err := fs.Rename(fs.PathJoin(dir, unfinishedStore), fs.PathJoin(dir, storeDir)); err != nil {
		return err
	}
	if err := syncDir(fs, dir); err != nil {
		return err
	}
	if err := fs.Remove(fs.PathJoin(dir, unfinishedFile)); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

// checkFinished refuses a folder that is not whole.
func checkFinished(fs vfs.FS, dir string) error {
	path := fs.PathJoin(dir, unfinishedFile)
	if !exists(fs, path) {
		return nil
	}
	what, err := readFile(fs, path)
	text := strings.TrimSpace(string(what))
	if err != nil || text == "" {
		text = "restore"
	}
	return errors.Join(fmt.Errorf("the folder is of an unfinished %s: remove it and repeat the %s", text, text), err)
}
