package disk

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// The folder's format. It only goes up: a newer engine reads older folders, and
// an older engine refuses newer ones.
const (
	formatFile    = "FORMAT"
	formatTitle   = "parley journal format "
	formatVersion = 1
	storeDir      = "store"
)

// FormatError refuses a folder that a newer version has written.
type FormatError struct {
	Dir       string
	Has, Know int
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("data folder %s has format %d; this version reads up to format %d: use a version that knows format %d",
		e.Dir, e.Has, e.Know, e.Has)
}

func formatText(version int) []byte { return fmt.Appendf(nil, "%s%d\n", formatTitle, version) }

func checkFormat(fs vfs.FS, dir string) error {
	if err := checkFinished(fs, dir); err != nil {
		return err
	}
	data, err := storefs.ReadFile(fs, fs.PathJoin(dir, formatFile))
	if err != nil {
		return layout.Damaged(err, "%s", formatFile)
	}
	var version int
	rest, ok := strings.CutPrefix(string(data), formatTitle)
	if !ok {
		return layout.Damaged(layout.ErrForm, "%s", formatFile)
	}
	if _, err := fmt.Sscanf(rest, "%d\n", &version); err != nil || string(formatText(version)) != string(data) || version < 1 {
		return layout.Damaged(layout.ErrForm, "%s", formatFile)
	}
	if version > formatVersion {
		return &FormatError{Dir: dir, Has: version, Know: formatVersion}
	}
	return nil
}
