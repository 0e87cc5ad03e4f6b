package repair

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/backup"
	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/store"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// maxStoredKey is longer than any key of a store and than any index key of a block.
const maxStoredKey = 8 << 10

// soleTable is one table of a store, read without Pebble as far as it is intact.
type soleTable struct {
	*sstable.Reader
	file  *blockFile
	other []error // errors that do not name a block
}

// blockFile is a table's file. Reading a block that is known to be damaged fails at
// once, because Pebble would otherwise try all bits to find one that was flipped.
type blockFile struct {
	vfs.File
	bad map[int64]error // by offset
}

func (f *blockFile) ReadAt(b []byte, at int64) (int, error) {
	if err := f.bad[at]; err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, at)
}

func openTable(fs vfs.FS, path string, opts store.Options) (*soleTable, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	t := &soleTable{file: &blockFile{f, map[int64]error{}}}
	readable, err := sstable.NewSimpleReadable(t.file)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	p := opts.Quietly()
	p.EnsureDefaults()
	t.Reader, err = sstable.NewReader(context.Background(), readable, p.MakeReaderOptions())
	return t, err
}

// damage returns all errors that were found, in the table's order.
func (t *soleTable) damage() []error {
	all := t.other
	for _, at := range slices.Sorted(maps.Keys(t.file.bad)) {
		all = append(all, t.file.bad[at])
	}
	return all
}

// verify reads every block, also those that only lookups of single keys need.
func (t *soleTable) verify() {
	l, err := t.Layout()
	if err != nil {
		t.met(err)
		return
	}
	blocks := slices.Concat(l.Index, l.ValueBlock, []block.Handle{
		l.TopIndex, l.RangeDel, l.RangeKey, l.ValueIndex, l.Properties, l.MetaIndex, l.BlobReferenceIndex,
	})
	for _, h := range l.Data {
		blocks = append(blocks, h.Handle)
	}
	for _, h := range l.Filter {
		blocks = append(blocks, h.Handle)
	}
	slices.SortFunc(blocks, func(a, b block.Handle) int { return cmp.Compare(a.Offset, b.Offset) })
	var buf []byte
	for _, h := range blocks {
		if h.Length == 0 {
			continue // there is none
		}
		buf = slices.Grow(buf[:0], int(h.Length)+block.TrailerLen)[:int(h.Length)+block.TrailerLen]
		if err := t.file.verify(buf, int64(h.Offset)); err != nil {
			t.file.bad[int64(h.Offset)] = fmt.Errorf("block %d/%d: %w", h.Offset, h.Length, err)
		}
	}
}

// verify reads a block and compares its checksum: a block is its contents, a byte for
// the compression, and a masked CRC32C of both.
func (f *blockFile) verify(b []byte, at int64) error {
	if _, err := f.ReadAt(b, at); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	sum := crc32.Checksum(b[:len(b)-4], layout.Castagnoli)
	if binary.LittleEndian.Uint32(b[len(b)-4:]) != (sum>>15|sum<<17)+0xa282ead8 {
		return layout.ErrSum
	}
	return nil
}

// met records an error of Pebble, and returns Pebble's name for the block that the
// error is about, or "" if it names none.
func (t *soleTable) met(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	var at, length int64
	from := strings.Index(text, "block ")
	if from < 0 {
		t.other = append(t.other, errors.New(text))
		return ""
	}
	if n, _ := fmt.Sscanf(text[from:], "block %d/%d", &at, &length); n != 2 {
		t.other = append(t.other, errors.New(text))
		return ""
	}
	if t.file.bad[at] == nil {
		t.file.bad[at] = errors.New(text[from:])
	}
	return fmt.Sprintf("block %d/%d", at, length)
}

// each calls fn for everything in the table that can be read. It skips a block that
// cannot be read.
func (t *soleTable) each(fn func(key sstable.InternalKey, value []byte) error) error {
	it, err := t.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return err
	}
	defer it.Close() //nolint:errcheck // errors are looked at below
	last := []byte{}
	kv := it.First()
	for {
		for ; kv != nil; kv = it.Next() {
			value, _, err := kv.Value(nil)
			if err != nil {
				return err
			}
			last = append(last[:0], kv.K.UserKey...)
			if err := fn(kv.K, value); err != nil {
				return err
			}
		}
		if it.Error() == nil {
			return nil
		}
		name := t.met(it.Error())
		next, ok := behind(last, func(from []byte) bool {
			it.SeekGE(from, 0)
			return name != "" && it.Error() != nil && strings.Contains(it.Error().Error(), name+":")
		})
		if !ok || string(next) <= string(last) {
			return nil
		}
		last = append(last[:0], next...) // the next block may be damaged as well
		kv = it.SeekGE(next, 0)
	}
}

// behind returns the first key after a block that cannot be read. Only the table's
// index knows where the block ends, and only seeking uses the index: a seek to any key
// from last to that end leads into the block.
func behind(last []byte, leads func(from []byte) bool) (key []byte, ok bool) {
	within := func(from []byte) bool { return string(from) <= string(last) || leads(from) }
	if within([]byte{0xff}) {
		return nil, false // not one block is damaged, but the index
	}
	for within(append(key, 0)) {
		b := sort.Search(256, func(b int) bool { return !within(append(key, byte(b))) })
		if key = append(key, byte(b-1)); len(key) > maxStoredKey {
			return nil, false
		}
	}
	return append(key, 0), true
}

// verifyTables reads every table in use, and returns the damage by path.
func verifyTables(db *pebble.DB, fs vfs.FS, dir string, opts store.Options, progress backup.Progress) map[string]error {
	bad := map[string]error{}
	levels, err := db.SSTables()
	if err != nil {
		return bad // the pass over the keys returns the same error
	}
	n := int64(0)
	for _, level := range levels {
		for _, t := range level {
			path := fs.PathJoin(dir, datadir.StoreDir, fmt.Sprintf("%06d.sst", uint64(t.BackingSSTNum)))
			if err := verifyTable(fs, path, opts); err != nil {
				bad[path] = err
			}
			n++
			progress.Tell("tables", n, 0)
		}
	}
	return bad
}

func verifyTable(fs vfs.FS, path string, opts store.Options) (err error) {
	defer recoverDamage(&err)
	t, err := openTable(fs, path, opts)
	if err != nil {
		return err
	}
	t.verify()
	return errors.Join(append(t.damage(), t.Close())...)
}

// recoverDamage turns a panic on damaged bytes into an error.
func recoverDamage(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%v", p)
	}
}

// readableRest returns a table in memory with the readable part of a damaged table,
// and the errors of the rest.
func readableRest(fs vfs.FS, path string, opts store.Options) (table []byte, bad []error, err error) {
	defer recoverDamage(&err)
	t, err := openTable(fs, path, opts)
	if err != nil {
		return nil, nil, err
	}
	defer t.Close() //nolint:errcheck // only read
	t.verify()
	table, err = newTable(opts, func(w sstable.RawWriter) error {
		err := t.each(func(key sstable.InternalKey, value []byte) error { return w.Add(key, value, false) })
		if err != nil {
			return err
		}
		dels, err := t.NewRawRangeDelIter(context.Background(), sstable.NoFragmentTransforms, sstable.NoReadEnv)
		if err != nil || dels == nil {
			return err
		}
		defer dels.Close()
		span, err := dels.First()
		for ; span != nil; span, err = dels.Next() {
			if err := w.EncodeSpan(*span); err != nil {
				return err
			}
		}
		return err
	})
	return table, t.damage(), err
}

// newTable makes a table in memory.
func newTable(opts store.Options, fill func(sstable.RawWriter) error) ([]byte, error) {
	mem := vfs.NewMem()
	f, err := mem.Create("table", "journal-check")
	if err != nil {
		return nil, err
	}
	p := opts.Quietly()
	p.EnsureDefaults()
	w := sstable.NewRawWriter(objstorageprovider.NewFileWritable(f), p.MakeWriterOptions(0, store.Format.MaxTableFormat()))
	if err := errors.Join(fill(w), w.Close()); err != nil {
		return nil, err
	}
	return storefs.ReadFile(mem, "table")
}
