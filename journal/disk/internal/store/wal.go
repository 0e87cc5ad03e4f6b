package store

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/walchunk"
)

// WAL describes one write-ahead log of the store: where recovery stops, what comes
// after that, and which commits the log holds.
type WAL struct {
	Path   string
	number uint32
	walchunk.End
	first, last uint64 // offsets of commits; 0: none
	epoch       uint64 // epoch that was begun in this log; 0: none
}

// ScanWALs reads every write-ahead log of a store in order, as Pebble's recovery will.
func ScanWALs(fs vfs.FS, store string) ([]WAL, error) {
	names, err := fs.List(store)
	if err != nil {
		return nil, err
	}
	var ends []WAL
	for _, name := range names {
		number, _, ok := wal.ParseLogFilename(name)
		if !ok || !strings.HasSuffix(name, ".log") {
			continue
		}
		w := WAL{Path: fs.PathJoin(store, name), number: uint32(number)}
		if err := w.scan(fs); err != nil {
			return nil, err
		}
		ends = append(ends, w)
	}
	slices.SortFunc(ends, func(a, b WAL) int { return int(a.number) - int(b.number) })
	return ends, nil
}

func (w *WAL) scan(fs vfs.FS) error {
	f, err := fs.Open(w.Path)
	if err != nil {
		return err
	}
	w.End, err = walchunk.Read(f, w.number, func(record []byte) error {
		if len(record) < batchrepr.HeaderLen {
			return layout.ErrForm
		}
		ops := batchrepr.Read(record)
		for {
			kind, key, value, ok, err := ops.Next()
			if err != nil || !ok {
				return err
			}
			if kind == pebble.InternalKeyKindSet && string(key) == string(layout.KeyEpoch) {
				if w.epoch, err = layout.DecodeNumber(key, value); err != nil {
					return err
				}
			}
			if kind == pebble.InternalKeyKindSet && len(key) == 9 && key[0] == layout.KindCommit {
				w.last = max(w.last, layout.OffsetOf(key))
				if first := layout.FirstOffset(key, value); w.first == 0 || first < w.first {
					w.first = first
				}
			}
		}
	})
	return errors.Join(err, f.Close())
}

// View is a store's folder as it looks without its write-ahead logs, or
// with one of them cut short.
type View struct {
	vfs.FS
	hideLogs bool
	Cut      string // path of the log that is cut
	At       int64
}

func (v View) List(dir string) ([]string, error) {
	names, err := v.FS.List(dir)
	if v.hideLogs {
		names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, ".log") })
	}
	return names, err
}

func (v View) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := v.FS.Open(name, opts...)
	if err != nil || v.Cut == "" || name != v.Cut {
		return f, err
	}
	return &cutFile{File: f, left: v.At}, nil
}

type cutFile struct {
	vfs.File
	left int64
}

func (c *cutFile) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, io.EOF
	}
	n, err := c.File.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	return n, err
}

// ScanManifest returns an error if the MANIFEST in use has damage that Pebble would
// treat as its end.
func ScanManifest(fs vfs.FS, store string) error {
	names, err := fs.List(store)
	if err != nil {
		return err
	}
	current := ""
	latest := ""
	for _, name := range names { // marker.manifest.NUMBER.MANIFEST-…
		rest, ok := strings.CutPrefix(name, "marker.manifest.")
		if number, manifest, found := strings.Cut(rest, "."); ok && found && number > latest {
			latest, current = number, manifest
		}
	}
	if current == "" {
		return layout.Damaged(errors.New("it is missing"), "the marker of the MANIFEST")
	}
	f, err := fs.Open(fs.PathJoin(store, current))
	if err != nil {
		return layout.Damaged(err, "%s", current)
	}
	end, err := walchunk.Read(f, 0, func([]byte) error { return nil })
	if err == nil && end.Beyond > 0 {
		err = layout.ErrSum
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return layout.Damaged(err, "%s", current)
	}
	return nil
}
