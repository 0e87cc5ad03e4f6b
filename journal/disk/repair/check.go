package repair

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/internal/backup"
	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/store"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
	"github.com/parley-hub/parley/journal/internal/order"
)

// CheckReport is what Check found.
type CheckReport struct {
	Epoch    uint64      `json:"epoch"`
	Offset   uint64      `json:"offset"`
	Clean    bool        `json:"clean"`            // closed cleanly
	Backup   bool        `json:"backup,omitempty"` // a backup: to be restored, not opened
	Logs     int64       `json:"logs"`
	Records  int64       `json:"records"`
	Bytes    int64       `json:"bytes"` // of records' data
	Commits  int64       `json:"commits"`
	Index    int64       `json:"index"`
	Claims   int64       `json:"claims"`
	Values   int64       `json:"values"`
	Cuts     []store.Cut `json:"cuts,omitempty"`
	Problems []string    `json:"problems,omitempty"` // what is damaged or missing, each by name
}

// OK reports whether no problem was found.
func (r *CheckReport) OK() bool { return len(r.Problems) == 0 }

func (r *CheckReport) problem(err error) { r.Problems = append(r.Problems, err.Error()) }

// Check verifies every record of a folder that no process has open, and
// everything else that is stored, without writing to it. Damage is in the report;
// an error means that the folder could not be checked.
func Check(dir string, options disk.Options, progress backup.Progress) (*CheckReport, error) {
	opts, lock, err := openReadOnly(dir, options)
	if err != nil {
		return nil, err
	}
	report := &CheckReport{}
	err = report.run(dir, opts, progress)
	return report, errors.Join(err, lock.Close())
}

func (r *CheckReport) run(dir string, opts store.Options, progress backup.Progress) error {
	fs := opts.FS
	last, file, err := r.durable(fs, dir)
	if err != nil {
		r.problem(err)
	}
	seen, err := r.guards(fs, dir)
	if err != nil {
		return err
	}
	if err := r.pass(seen, dir, opts, progress); err != nil {
		return err
	}
	if r.Epoch < last.Epoch || (r.Epoch == last.Epoch && r.Offset < last.Offset) {
		r.problem(layout.Damaged(fmt.Errorf("it ends at offset %d of epoch %d, %s says %d of %d",
			r.Offset, r.Epoch, file, last.Offset, last.Epoch), "the store"))
	}
	return nil
}

// durable reads the minimum that the folder must hold, and returns the name of the
// file that it read: MARK or, in a backup, CHECKPOINT.
func (r *CheckReport) durable(fs vfs.FS, dir string) (datadir.Mark, string, error) {
	path := fs.PathJoin(dir, backup.CheckpointFile)
	if r.Backup = storefs.Exists(fs, path); !r.Backup {
		last, err := datadir.ReadMark(fs, dir)
		return last, datadir.MarkFile, err
	}
	at, err := backup.ReadCheckpoint(fs, dir)
	return at, backup.CheckpointFile, err
}

// pass reads everything. If a table is damaged, it starts again with the readable
// part of that table, so that what the table lost is reported as missing and
// everything else is verified.
func (r *CheckReport) pass(seen vfs.FS, dir string, opts store.Options, progress backup.Progress) error {
	fs, err := newMaskFS(seen, opts)
	if err != nil {
		return err
	}
	opts.FS = fs
	before := *r
	var tables []string
	for {
		bad := map[string]error{}
		p := opts.Quietly()
		p.ReadOnly, p.DisableConsistencyCheck = true, true
		var mu sync.Mutex
		p.EventListener = &pebble.EventListener{DataCorruption: func(info pebble.DataCorruptionInfo) {
			mu.Lock()
			defer mu.Unlock()
			bad[info.Path] = info.Details
		}}
		db, err := store.Open(fs, dir, p)
		if err != nil {
			r.problem(err)
			return nil
		}
		var first map[string]error
		if tables == nil {
			first = verifyTables(db, fs, dir, opts, progress)
		}
		if len(first) == 0 {
			c := &checker{report: r, db: db, progress: progress, logs: map[order.ID]*checkedLog{}}
			c.all()
		}
		if err := db.Close(); err != nil {
			return err
		}
		maps.Copy(bad, first)
		if len(bad) == 0 {
			r.Problems = append(tables, r.Problems...)
			return nil
		}
		for _, path := range slices.Sorted(maps.Keys(bad)) {
			found, ok := fs.mend(path, bad[path])
			if !ok {
				return layout.Damaged(bad[path], "%s", path)
			}
			for _, err := range found {
				tables = append(tables, layout.Damaged(err, "%s", fs.PathBase(path)).Error())
			}
		}
		*r = before
	}
}

// guards checks SEAL or, without it, the ends of the logs, and returns the file system
// through which the store is to be read.
func (r *CheckReport) guards(fs vfs.FS, dir string) (vfs.FS, error) {
	folder := fs.PathJoin(dir, datadir.StoreDir)
	s, err := datadir.ReadSeal(fs, dir)
	if err != nil {
		r.problem(err)
	}
	if s != nil {
		r.Clean = true
		if err := s.Verify(fs, folder); err != nil {
			for _, one := range unjoin(err) {
				r.problem(one)
			}
		}
		return fs, nil
	}
	if err := store.ScanManifest(fs, folder); err != nil {
		r.problem(err)
	}
	ends, err := store.ScanWALs(fs, folder)
	if err != nil || len(ends) == 0 {
		return fs, err
	}
	w := ends[len(ends)-1]
	if w.Proven {
		r.problem(layout.Damaged(fmt.Errorf("unreadable at offset %d", w.Stop), "%s", fs.PathBase(w.Path)))
		return store.View{FS: fs, Cut: w.Path, At: w.Stop}, nil
	}
	cut, _, err := w.Unused(fs)
	if cut != nil {
		r.Cuts = append(r.Cuts, *cut)
	}
	return fs, err
}

func unjoin(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // exactly a joined error
		return joined.Unwrap()
	}
	return []error{err}
}

// checkedLog is what is known of a log.
type checkedLog struct {
	name     journal.LogName
	head     order.Head
	found    uint64 // records
	last     uint64
	nameless bool // reported already
}

// title returns the name of a log in the report.
func (l *checkedLog) title(id order.ID) string {
	if l.nameless {
		return fmt.Sprintf("number %d", id)
	}
	return l.name.String()
}

type checker struct {
	report   *CheckReport
	db       *pebble.DB
	progress backup.Progress
	logs     map[order.ID]*checkedLog
	removing map[order.ID]struct{}
}

func (c *checker) all() {
	r := c.report
	var err error
	if r.Epoch, r.Offset, err = store.ReadPlace(c.db); err != nil {
		r.problem(err)
	}
	c.removing = map[order.ID]struct{}{}
	removals, err := store.Removals(c.db)
	if err != nil {
		r.problem(err)
	}
	for _, r := range removals {
		c.removing[r.ID] = struct{}{}
	}
	c.each(layout.KindName, func(key, value []byte) error {
		name, err := layout.DecodeName(key, value)
		if err != nil || len(key) != 9 {
			return layout.Damaged(err, "the name of log number %x", key[1:])
		}
		c.logs[order.ID(binary.BigEndian.Uint64(key[1:]))] = &checkedLog{name: name}
		return nil
	})
	c.each(layout.KindHead, func(key, value []byte) error {
		name, head, err := decodeHead(key, value)
		if err != nil {
			return err
		}
		r.Logs++
		log := c.logs[head.ID]
		if log == nil {
			c.logs[head.ID] = &checkedLog{name: name, head: head}
			return layout.Damaged(nil, "the number of log %v is not known; it", name)
		}
		log.head = head
		return nil
	})
	c.each(layout.KindRecord, c.record)
	c.heads()
	c.entries()
	c.derived()
}

// each calls check for every key of a kind. Keys that cannot be read are not
// reported here: their table is.
func (c *checker) each(kind byte, check func(key, value []byte) error) {
	n := int64(0)
	err := store.ScanRange(c.db, []byte{kind}, []byte{kind + 1}, func(key, value []byte) error {
		if n++; n%1000 == 0 {
			c.progress.Tell(kindTitles[kind], n, 0)
		}
		if err := check(key, value); err != nil {
			c.report.problem(err)
		}
		return nil
	})
	if err != nil {
		c.report.problem(err)
	}
}

var kindTitles = map[byte]string{
	layout.KindName: "names", layout.KindHead: "heads", layout.KindRecord: "records", layout.KindCommit: "commits",
	layout.KindIndex: "index", layout.KindClaim: "claims", layout.KindValue: "values", layout.KindLazy: "values",
}

func (c *checker) record(key, value []byte) error {
	if len(key) != layout.RecordKeyLen {
		return layout.Damaged(layout.ErrKey, "the key %x", key)
	}
	id, seq := order.ID(binary.BigEndian.Uint64(key[1:])), layout.SeqOf(key)
	if _, going := c.removing[id]; going {
		return nil
	}
	log := c.logs[id]
	if log == nil {
		log = &checkedLog{nameless: true}
		c.logs[id] = log
		c.report.problem(layout.Damaged(nil, "the name of log number %d is missing; it", id))
	}
	rec, err := layout.DecodeRecord(value, id, seq)
	if err != nil {
		return layout.Damaged(err, "record %d of log %s", seq, log.title(id))
	}
	if _, err := rec.DecodeEffects(); err != nil {
		return layout.Damaged(err, "record %d of log %s", seq, log.title(id))
	}
	c.report.Records++
	c.report.Bytes += int64(len(rec.Data))
	log.found++
	if seq != log.last+1 {
		err = layout.Damaged(nil, "records %d to %d of log %s are missing; it", log.last+1, seq-1, log.title(id))
	}
	log.last = seq
	return err
}

// heads compares the heads of logs with their records.
func (c *checker) heads() {
	for id, log := range c.logs {
		if _, going := c.removing[id]; going || log.nameless {
			continue
		}
		switch {
		case log.head.ID == 0:
			c.report.problem(layout.Damaged(nil, "the head of log %v is missing; it", log.name))
		case log.last < log.head.Seq:
			c.report.problem(layout.Damaged(nil, "records %d to %d of log %v are missing; it", log.last+1, log.head.Seq, log.name))
		case log.last > log.head.Seq:
			c.report.problem(layout.Damaged(fmt.Errorf("it says %d, the last record is %d", log.head.Seq, log.last), "the head of log %v", log.name))
		}
	}
}

func (c *checker) entries() {
	want := uint64(1)
	c.each(layout.KindCommit, func(key, value []byte) error {
		var all []error
		for offset, decode := range layout.DecodeEntries(key, value) {
			en, err := decode()
			if err != nil {
				return errors.Join(append(all, layout.Damaged(err, "the entry of commit %d", want))...)
			}
			if offset != want {
				all = append(all, layout.Damaged(nil, "the entries of commits %d to %d are missing; they", want, offset-1))
			}
			want = offset + 1
			c.report.Commits++
			for _, w := range en.Writes {
				if log := c.logs[w.ID]; log != nil && !log.nameless && log.last < w.Last() {
					if _, going := c.removing[w.ID]; !going {
						all = append(all, layout.Damaged(nil, "record %d of log %v is missing; it", w.Last(), log.name))
					}
				}
			}
		}
		return errors.Join(all...)
	})
}

// derived verifies the data derived from the records: it can be rebuilt, but has its
// own checksums.
func (c *checker) derived() {
	c.each(layout.KindIndex, func(key, value []byte) error {
		c.report.Index++
		_, err := layout.Checked(key, value)
		if err == nil {
			_, _, err = layout.SplitIndexKey(key)
		}
		return orDamaged(err, "index entry %x", key)
	})
	c.each(layout.KindClaim, func(key, value []byte) error {
		c.report.Claims++
		_, err := layout.DecodeClaim(key, value)
		return orDamaged(err, "claim %q", key[1:])
	})
	for _, kind := range []byte{layout.KindValue, layout.KindLazy} {
		c.each(kind, func(key, value []byte) error {
			c.report.Values++
			_, err := layout.DecodeValue(key, value)
			return orDamaged(err, "value %x", key[1:])
		})
	}
}

func orDamaged(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return layout.Damaged(err, what, args...)
}
