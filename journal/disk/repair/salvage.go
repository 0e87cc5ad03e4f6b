// Package repair works on data folders that no engine has open: it checks,
// describes, restores and salvages them. It never writes to the folder that it
// reads.
package repair

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/internal/backup"
	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/store"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
	"github.com/parley-hub/parley/journal/internal/order"
)

// SalvageReport is what Salvage could and could not copy.
type SalvageReport struct {
	Epoch      uint64     `json:"epoch"` // of the new folder
	Logs       int64      `json:"logs"`
	Records    int64      `json:"records"`
	Values     int64      `json:"values"`
	Unreadable []string   `json:"unreadable,omitempty"` // files or parts of them, each with the reason
	Lost       []LostPart `json:"lost,omitempty"`
	Apart      int64      `json:"apart"` // readable records after a gap in their log; they are in the file APART
}

// LostPart is a range of a log that is not in the new folder.
type LostPart struct {
	Log  string `json:"log"`
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// apartFile has the records that are readable but come after a gap in their log, one
// JSON object on each line.
const apartFile = "APART"

// salvageBytes bounds one write of a salvage.
const salvageBytes = 1 << 20

// Salvage copies everything that is readable in a damaged folder to a new one,
// in a new epoch. It reads tables and logs one by one and does not need the MANIFEST.
// A log keeps its records up to its first gap. Salvage does not write to the damaged
// folder.
func Salvage(dir, to string, options disk.Options, progress backup.Progress) (*SalvageReport, error) {
	opts := options.Store()
	fs := opts.FS
	if err := datadir.Vacant(fs, to, "salvage"); err != nil {
		return nil, err
	}
	if err := datadir.MayRead(fs, dir); err != nil {
		return nil, err
	}
	if !storefs.Exists(fs, fs.PathJoin(dir, datadir.StoreDir)) {
		return nil, fmt.Errorf("%s has no store to salvage", dir)
	}
	var newer *datadir.FormatError
	if err := datadir.CheckFormat(fs, dir); errors.As(err, &newer) {
		return nil, err
	}
	lock, err := datadir.LockReadOnly(fs, dir)
	if err != nil {
		return nil, err
	}
	report, err := store.Guarded(to, opts, func(opts store.Options) (*SalvageReport, error) { return salvage(dir, to, opts, options, progress) })
	return report, errors.Join(err, lock.Close())
}

func salvage(dir, to string, opts store.Options, engine disk.Options, progress backup.Progress) (*SalvageReport, error) {
	fs := opts.FS
	s := &salvager{opts: opts, report: &SalvageReport{}, progress: progress}
	if err := datadir.Begin(fs, to, "salvage"); err != nil {
		return nil, err
	}
	scratchDir, outDir := fs.PathJoin(to, "scratch"), fs.PathJoin(to, datadir.UnfinishedStore)
	if err := storefs.MakeDir(fs, scratchDir); err != nil {
		return nil, err
	}
	if err := s.gather(dir, scratchDir); err != nil {
		return nil, err
	}
	if err := s.build(scratchDir, outDir, fs.PathJoin(to, apartFile)); err != nil {
		return nil, err
	}
	last, err := datadir.ReadMark(fs, dir)
	if err != nil {
		s.unreadable(err)
	}
	if err := fs.RemoveAll(scratchDir); err != nil {
		return nil, err
	}
	if err := adopt(to, opts, max(last.Epoch, s.epoch)); err != nil {
		return nil, err
	}
	// The first open makes the index and the claims.
	e, err := disk.Open(to, engine)
	if err != nil {
		return nil, err
	}
	at, err := e.Place(context.Background(), 0)
	s.report.Epoch = at.Epoch
	return s.report, errors.Join(err, e.Close())
}

// salvager holds what both passes share.
type salvager struct {
	opts     store.Options
	report   *SalvageReport
	progress backup.Progress
	deleted  []deletedRange
	epoch    uint64 // highest that was found
}

type deletedRange struct {
	start, end string
	seq        uint64
}

func (s *salvager) unreadable(err error) {
	s.report.Unreadable = append(s.report.Unreadable, err.Error())
}

// build writes the new store from the newest version of every key.
func (s *salvager) build(scratchDir, outDir, apart string) error {
	scratch, err := pebble.Open(scratchDir, s.opts.Quietly())
	if err != nil {
		return err
	}
	out, err := pebble.Open(outDir, s.opts.Quietly())
	if err != nil {
		return errors.Join(err, scratch.Close())
	}
	rest := &apartWriter{fs: s.opts.FS, path: apart}
	b := &builder{
		s: s, out: out, batch: out.NewBatch(), apart: rest,
		names: map[order.ID]journal.LogName{}, heads: map[order.ID]order.Head{}, entries: map[uint64]layout.Entry{},
		going: map[order.ID]struct{}{}, seen: map[order.ID]struct{}{}, newest: map[journal.LogName]order.ID{},
	}
	err = s.newest(scratch, b.take)
	if err == nil {
		err = b.finish()
	}
	return errors.Join(err, rest.close(), out.Flush(), out.Close(), scratch.Close())
}

// newest calls each for every key that is not deleted, with its last value.
func (s *salvager) newest(scratch *pebble.DB, each func(key, value []byte) error) error {
	it, err := scratch.NewIter(nil)
	if err != nil {
		return err
	}
	defer it.Close() //nolint:errcheck // read errors are looked at below
	var last []byte
	n := int64(0)
	for ok := it.First(); ok; ok = it.Next() {
		key, seq, err := splitVersion(it.Key())
		if err != nil {
			return err
		}
		if last != nil && string(last) == string(key) {
			continue // an older version
		}
		last = append(last[:0], key...)
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if n++; n%1000 == 0 {
			s.progress.Tell("writing", n, 0)
		}
		if len(value) == 0 || value[0] == versionDeleted || s.covered(key, seq) {
			continue
		}
		if err := each(key, value[1:]); err != nil {
			return err
		}
	}
	return it.Error()
}

func (s *salvager) covered(key []byte, seq uint64) bool {
	for i := range s.deleted {
		d := &s.deleted[i]
		if d.seq > seq && d.start <= string(key) && string(key) < d.end {
			return true
		}
	}
	return false
}
