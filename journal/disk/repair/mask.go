package repair

import (
	"errors"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parley-hub/parley/journal/disk/internal/store"
)

// maxMended bounds the damaged tables that are kept in memory, in bytes of their
// files. Further damaged tables read as empty.
const maxMended = 512 << 20

// maskFS is a file system that replaces damaged tables with their readable part, or
// with an empty table, so that the rest of a store can be read.
type maskFS struct {
	vfs.FS
	opts   store.Options
	empty  []byte
	shown  map[string][]byte // by path
	mended int64
}

func newMaskFS(fs vfs.FS, opts store.Options) (*maskFS, error) {
	empty, err := newTable(opts, func(sstable.RawWriter) error { return nil })
	return &maskFS{FS: fs, opts: opts, empty: empty, shown: map[string][]byte{}}, err
}

// mend replaces a table with its readable part, and returns the errors of the rest.
// If the table is still damaged after that, mend replaces it with an empty one. ok is
// false if it is empty already.
func (h *maskFS) mend(path string, damage error) (bad []error, ok bool) {
	text, _, _ := strings.Cut(damage.Error(), "\n")
	bad = []error{errors.New(text)}
	if shown, again := h.shown[path]; again {
		h.shown[path] = h.empty
		return nil, len(shown) != len(h.empty)
	}
	h.shown[path] = h.empty
	info, err := h.FS.Stat(path)
	if err != nil || h.mended+info.Size() > maxMended {
		return bad, true
	}
	rest, blocks, err := readableRest(h.FS, path, h.opts)
	if err != nil {
		return bad, true
	}
	h.shown[path] = rest
	h.mended += info.Size()
	if len(blocks) > 0 {
		bad = blocks
	}
	return bad, true
}

func (h *maskFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if shown, ok := h.shown[name]; ok {
		return vfs.NewMemFile(shown), nil
	}
	return h.FS.Open(name, opts...)
}

func (h *maskFS) Stat(name string) (vfs.FileInfo, error) {
	if shown, ok := h.shown[name]; ok {
		return vfs.NewMemFile(shown).Stat()
	}
	return h.FS.Stat(name)
}

func (h *maskFS) List(dir string) ([]string, error) {
	names, err := h.FS.List(dir)
	if err != nil {
		return nil, err
	}
	for path := range h.shown {
		if name := h.PathBase(path); h.PathDir(path) == dir && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}
