package repair

import (
	"errors"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"

	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/internal/backup"
	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/store"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// FolderStats describe a data folder.
type FolderStats struct {
	Format   int              `json:"format"`
	Epoch    uint64           `json:"epoch"`
	Offset   uint64           `json:"offset"`
	Clean    bool             `json:"clean"`
	Logs     int64            `json:"logs"`
	Records  uint64           `json:"records"`
	Families map[string]int64 `json:"families"` // logs of each
	Tenants  map[string]int64 `json:"tenants"`  // logs of each
	Removing int              `json:"removing"`
	Tables   int              `json:"tables"`
	Bytes    struct {
		Total   int64  `json:"total"` // all files
		Logs    int64  `json:"logs"`  // the store's write-ahead logs
		Records uint64 `json:"records"`
		Index   uint64 `json:"index"`
		Claims  uint64 `json:"claims"`
		Values  uint64 `json:"values"`
		Commits uint64 `json:"commits"`
	} `json:"bytes"`
}

// ReadStats describes a folder that no process has open, without writing to
// it. It reads the logs' heads, not their records.
func ReadStats(dir string, options disk.Options, progress backup.Progress) (*FolderStats, error) {
	opts, lock, err := openReadOnly(dir, options)
	if err != nil {
		return nil, err
	}
	fs := opts.FS
	p := opts.Quietly()
	p.ReadOnly = true
	db, err := store.Open(fs, dir, p)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s := &FolderStats{
		Format: datadir.FormatVersion, Clean: storefs.Exists(fs, fs.PathJoin(dir, datadir.SealFile)),
		Families: map[string]int64{}, Tenants: map[string]int64{},
	}
	err = s.read(db, progress)
	if err == nil {
		err = s.files(opts, dir)
	}
	return s, errors.Join(err, db.Close(), lock.Close())
}

func (s *FolderStats) read(db *pebble.DB, progress backup.Progress) error {
	var err error
	if s.Epoch, s.Offset, err = store.ReadPlace(db); err != nil {
		return err
	}
	removals, err := store.Removals(db)
	if err != nil {
		return err
	}
	s.Removing = len(removals)
	err = store.ScanRange(db, []byte{layout.KindHead}, []byte{layout.KindHead + 1}, func(key, value []byte) error {
		log, head, err := decodeHead(key, value)
		if err != nil {
			return err
		}
		if s.Logs++; s.Logs%1000 == 0 {
			progress.Tell("logs", s.Logs, 0)
		}
		s.Records += head.Seq
		s.Families[log.Family]++
		s.Tenants[log.Tenant]++
		return nil
	})
	if err != nil {
		return err
	}
	for kind, into := range map[byte]*uint64{
		layout.KindRecord: &s.Bytes.Records, layout.KindIndex: &s.Bytes.Index, layout.KindClaim: &s.Bytes.Claims,
		layout.KindValue: &s.Bytes.Values, layout.KindCommit: &s.Bytes.Commits,
	} {
		if *into, err = db.EstimateDiskUsage([]byte{kind}, []byte{kind + 1}); err != nil {
			return layout.StoreError(err)
		}
	}
	return nil
}

func (s *FolderStats) files(opts store.Options, dir string) error {
	fs := opts.FS
	for _, folder := range []string{dir, fs.PathJoin(dir, datadir.StoreDir)} {
		names, err := fs.List(folder)
		if err != nil {
			return err
		}
		for _, name := range names {
			info, err := fs.Stat(fs.PathJoin(folder, name))
			if err != nil {
				return err
			}
			if info.IsDir() {
				continue
			}
			s.Bytes.Total += info.Size()
			switch filepath.Ext(name) {
			case ".log":
				s.Bytes.Logs += info.Size()
			case ".sst":
				s.Tables++
			}
		}
	}
	return nil
}
