package repair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/wal"

	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/store"
	"github.com/parley-hub/parley/journal/internal/order"
)

// Every version of every key that can be read goes to a scratch store, under
// the escaped key and its Pebble sequence number, newest first.
const (
	versionSet     = 1
	versionDeleted = 0
)

func versionKey(key []byte, seq uint64) []byte {
	return layout.IndexKey(nil, key, order.ID(math.MaxUint64-seq))
}

func splitVersion(b []byte) (key []byte, seq uint64, err error) {
	key, id, err := layout.SplitIndexKey(b)
	return key, math.MaxUint64 - uint64(id), err
}

// gather reads all tables and logs of a damaged store.
func (s *salvager) gather(dir, scratchDir string) error {
	fs := s.opts.FS
	scratch, err := pebble.Open(scratchDir, s.opts.Quietly())
	if err != nil {
		return err
	}
	g := &gatherer{s: s, db: scratch, batch: scratch.NewBatch(), store: fs.PathJoin(dir, datadir.StoreDir)}
	err = g.all(dir)
	if err == nil {
		err = g.flush()
	}
	return errors.Join(err, scratch.Flush(), scratch.Close())
}

type gatherer struct {
	s       *salvager
	db      *pebble.DB
	batch   *pebble.Batch
	store   string
	flushed uint64      // every batch up to here is in a table
	missing [][2]uint64 // sequence numbers of tables that could not be read
}

func (g *gatherer) all(dir string) error {
	fs := g.s.opts.FS
	tables, err := g.liveTables(dir)
	if err != nil { // the MANIFEST is unusable: every table in the folder may be live
		g.s.unreadable(err)
		names, listErr := fs.List(g.store)
		if listErr != nil {
			return listErr
		}
		slices.Sort(names)
		for _, name := range names {
			if strings.HasSuffix(name, ".sst") {
				tables = append(tables, table{name: name})
			}
		}
	}
	for i, t := range tables {
		g.s.progress.Tell("reading "+t.name, int64(i), int64(len(tables)))
		largest, bad := g.table(t.name)
		for _, err := range bad {
			g.s.unreadable(layout.Damaged(err, "%s", t.name))
		}
		if len(bad) > 0 {
			g.missing = append(g.missing, [2]uint64{t.smallest, t.largest})
		}
		g.flushed = max(g.flushed, t.largest, largest)
	}
	return g.logs()
}

type table struct {
	name              string
	smallest, largest uint64 // sequence numbers, where they are known
}

// liveTables reads from the MANIFEST which tables are in use.
func (g *gatherer) liveTables(dir string) ([]table, error) {
	opts := g.s.opts
	opts.FS = datadir.ReadOnlyFS{FS: opts.FS}
	p := opts.Quietly()
	p.ReadOnly, p.DisableConsistencyCheck = true, true
	db, err := store.Open(opts.FS, dir, p)
	if err != nil {
		return nil, err
	}
	defer db.Close() //nolint:errcheck // only read
	levels, err := db.SSTables()
	if err != nil {
		return nil, err
	}
	var tables []table
	for _, level := range levels {
		for _, t := range level {
			tables = append(tables, table{
				name:     fmt.Sprintf("%06d.sst", uint64(t.BackingSSTNum)),
				smallest: uint64(t.SmallestSeqNum), largest: uint64(t.LargestSeqNum),
			})
		}
	}
	return tables, nil
}

// table reads one table as far as it is readable, and returns the errors of the rest.
func (g *gatherer) table(name string) (largest uint64, bad []error) {
	defer func() {
		if p := recover(); p != nil {
			bad = append(bad, fmt.Errorf("%v", p))
		}
	}()
	fs := g.s.opts.FS
	t, err := openTable(fs, fs.PathJoin(g.store, name), g.s.opts)
	if err != nil {
		return 0, []error{err}
	}
	defer t.Close() //nolint:errcheck // only read
	t.verify()
	if err := g.rangeDels(t.Reader); err != nil {
		return 0, append(t.damage(), err)
	}
	err = t.each(func(key sstable.InternalKey, value []byte) error {
		seq := uint64(key.SeqNum())
		largest = max(largest, seq)
		return g.put(key.Kind(), key.UserKey, value, seq)
	})
	if bad = t.damage(); err != nil {
		bad = append(bad, err)
	}
	return largest, bad
}

func (g *gatherer) rangeDels(r *sstable.Reader) error {
	it, err := r.NewRawRangeDelIter(context.Background(), sstable.NoFragmentTransforms, sstable.NoReadEnv)
	if err != nil || it == nil {
		return err
	}
	defer it.Close()
	span, err := it.First()
	for ; span != nil; span, err = it.Next() {
		for _, k := range span.Keys {
			g.s.deleted = append(g.s.deleted, deletedRange{string(span.Start), string(span.End), uint64(k.SeqNum())})
		}
	}
	return err
}

func (g *gatherer) put(kind pebble.InternalKeyKind, key, value []byte, seq uint64) error {
	switch kind {
	case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
		_ = g.batch.Set(versionKey(key, seq), append([]byte{versionSet}, value...), nil)
	case pebble.InternalKeyKindDelete, pebble.InternalKeyKindSingleDelete, pebble.InternalKeyKindDeleteSized:
		_ = g.batch.Set(versionKey(key, seq), []byte{versionDeleted}, nil)
	case pebble.InternalKeyKindRangeDelete:
		g.s.deleted = append(g.s.deleted, deletedRange{string(key), string(value), seq})
	}
	if g.batch.Len() > salvageBytes {
		return g.flush()
	}
	return nil
}

func (g *gatherer) flush() error {
	if err := g.db.Apply(g.batch, pebble.NoSync); err != nil {
		return err
	}
	_ = g.batch.Close()
	g.batch = g.db.NewBatch()
	return nil
}

// logs reads from the write-ahead logs what is in no table, or in a table that could
// not be read.
func (g *gatherer) logs() error {
	logs, err := wal.Scan(wal.Dir{FS: g.s.opts.FS, Dirname: g.store})
	if err != nil {
		return err
	}
	for _, log := range logs {
		_, path := log.SegmentLocation(0)
		g.s.progress.Tell("reading "+g.s.opts.FS.PathBase(path), 0, 0)
		r := log.OpenForRead()
		for {
			rec, at, err := r.NextRecord()
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				err = g.walBatch(rec)
			}
			if err != nil {
				g.s.unreadable(layout.Damaged(err, "%s from offset %d", g.s.opts.FS.PathBase(path), at.Physical))
				break
			}
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (g *gatherer) walBatch(rec io.Reader) error {
	data, err := io.ReadAll(rec)
	if err != nil {
		return err
	}
	header, ok := batchrepr.ReadHeader(data)
	if !ok {
		return layout.ErrForm
	}
	seq := uint64(header.SeqNum)
	if !g.wanted(seq) {
		return nil
	}
	reader := batchrepr.Read(data)
	for {
		kind, key, value, ok, err := reader.Next()
		if err != nil || !ok {
			return err
		}
		if kind == pebble.InternalKeyKindLogData {
			continue // takes no number
		}
		if err := g.put(kind, key, value, seq); err != nil {
			return err
		}
		seq++
	}
}

func (g *gatherer) wanted(seq uint64) bool {
	return seq > g.flushed || slices.ContainsFunc(g.missing, func(m [2]uint64) bool { return m[0] <= seq && seq <= m[1] })
}
