// Package datadir reads and writes the files beside the store in a data folder:
// FORMAT, MARK, SEAL, LOCK and UNFINISHED. It never opens the store.
package datadir

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// The folder's format. It only goes up: a newer engine reads older folders, and
// an older engine refuses newer ones.
//
//	1  as first stored
//	2  an index entry in a record may refer to the record's data, or to the value of the
//	   entry before, instead of repeating it; records of format 1 are read as they are
const (
	FormatFile    = "FORMAT"
	formatTitle   = "parley journal format "
	FormatVersion = 2
	StoreDir      = "store"
)

// FormatError is the error for a folder that a newer version has written.
type FormatError struct {
	Dir       string
	Has, Know int
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("data folder %s has format %d; this version reads up to format %d: use a version that knows format %d",
		e.Dir, e.Has, e.Know, e.Has)
}

// FormatText returns the text of FORMAT.
func FormatText(version int) []byte { return fmt.Appendf(nil, "%s%d\n", formatTitle, version) }

// CheckFormat returns an error if a folder is incomplete or a newer version has
// written it.
func CheckFormat(fs vfs.FS, dir string) error {
	_, err := readFormat(fs, dir)
	return err
}

// RaiseFormat gives a folder this version's format. It is called before anything is
// written that an older version cannot read.
func RaiseFormat(fs vfs.FS, dir string) error {
	version, err := readFormat(fs, dir)
	if err != nil || version == FormatVersion {
		return err
	}
	if err := storefs.WriteFile(fs, dir, FormatFile, FormatText(FormatVersion)); err != nil {
		return fmt.Errorf("raising the format from %d to %d: %w", version, FormatVersion, err)
	}
	return nil
}

func readFormat(fs vfs.FS, dir string) (version int, err error) {
	if err := CheckFinished(fs, dir); err != nil {
		return 0, err
	}
	data, err := storefs.ReadFile(fs, fs.PathJoin(dir, FormatFile))
	if err != nil {
		return 0, layout.Damaged(err, "%s", FormatFile)
	}
	rest, ok := strings.CutPrefix(string(data), formatTitle)
	if !ok {
		return 0, layout.Damaged(layout.ErrForm, "%s", FormatFile)
	}
	if _, err := fmt.Sscanf(rest, "%d\n", &version); err != nil || string(FormatText(version)) != string(data) || version < 1 {
		return 0, layout.Damaged(layout.ErrForm, "%s", FormatFile)
	}
	if version > FormatVersion {
		return 0, &FormatError{Dir: dir, Has: version, Know: FormatVersion}
	}
	return version, nil
}
