package disk

import (
	"slices"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// hideFS shows empty tables in place of some that cannot be read, so that the
// rest of a store can be looked at as if they were not there.
type hideFS struct {
	vfs.FS
	empty  []byte
	hidden map[string]bool // by path
}

func newHideFS(fs vfs.FS, opts Options) (*hideFS, error) {
	empty, err := emptyTable(opts)
	return &hideFS{FS: fs, empty: empty, hidden: map[string]bool{}}, err
}

func emptyTable(opts Options) ([]byte, error) {
	mem := vfs.NewMem()
	f, err := mem.Create("empty", "journal-check")
	if err != nil {
		return nil, err
	}
	p := opts.quietly()
	p.EnsureDefaults()
	format := storeFormat.MaxTableFormat()
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), p.MakeWriterOptions(0, format))
	if err := w.Close(); err != nil {
		return nil, err
	}
	return readFile(mem, "empty")
}

func (h *hideFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if h.hidden[name] {
		return vfs.NewMemFile(h.empty), nil
	}
	return h.FS.Open(name, opts...)
}

func (h *hideFS) Stat(name string) (vfs.FileInfo, error) {
	if !h.hidden[name] {
		return h.FS.Stat(name)
	}
	return vfs.NewMemFile(h.empty).Stat()
}

func (h *hideFS) List(dir string) ([]string, error) {
	names, err := h.FS.List(dir)
	if err != nil {
		return nil, err
	}
	for path := range h.hidden {
		if name := h.PathBase(path); h.PathDir(path) == dir && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}
