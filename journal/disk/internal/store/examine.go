package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
	"github.com/parley-hub/parley/journal/disk/internal/walchunk"
)

// Recovery is what opening found.
type Recovery struct {
	Clean     bool  // the store was closed cleanly
	Cuts      []Cut // what was cut off because it was torn or damaged
	Lost      bool  // durable data is gone, and the epoch is new
	Reindexed bool  // the index was rebuilt
}

// Cut is the end of a file that recovery did not use.
type Cut struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
}

func (c Cut) String() string {
	return fmt.Sprintf("%s is cut at offset %d, %d bytes are not used", c.File, c.Offset, c.Bytes)
}

// Examine checks a store before it is opened for writing. It returns what it found
// and the last mark.
func Examine(dir string, opts Options) (Recovery, datadir.Mark, error) {
	fs := opts.FS
	var found Recovery
	last, err := datadir.ReadMark(fs, dir)
	if err != nil {
		return found, last, err
	}
	s, err := datadir.ReadSeal(fs, dir)
	if err != nil {
		return found, last, err
	}
	if s == nil {
		found, err = compare(dir, opts, last)
		for _, cut := range found.Cuts {
			opts.Logger.Warn("the store was not closed cleanly", "cut", cut.String(), "lost", found.Lost)
		}
		return found, last, err
	}
	if err := s.Verify(fs, fs.PathJoin(dir, datadir.StoreDir)); err != nil {
		return found, last, err
	}
	if _, _, err := peek(fs, dir, opts); err != nil { // before anything is written
		return found, last, err
	}
	if s.Epoch < last.Epoch || (s.Epoch == last.Epoch && s.Offset < last.Offset) {
		return found, last, layout.Damaged(fmt.Errorf("it ends at offset %d of epoch %d, %s says %d of %d",
			s.Offset, s.Epoch, datadir.MarkFile, last.Offset, last.Epoch), "%s", datadir.SealFile)
	}
	found.Clean = true
	if err := fs.Remove(fs.PathJoin(dir, datadir.SealFile)); err != nil {
		return found, last, err
	}
	return found, last, storefs.SyncDir(fs, dir)
}

// compare checks that a store that was not closed cleanly has everything that
// is durable according to MARK.
func compare(dir string, opts Options, last datadir.Mark) (Recovery, error) {
	fs := opts.FS
	var found Recovery
	s, err := Survey(dir, opts)
	if err != nil {
		return found, err
	}
	behind := s.Epoch < last.Epoch || (s.Epoch == last.Epoch && s.Offset < last.Offset)
	if behind && !opts.AcceptLoss {
		return found, NameFile(layout.Damaged(fmt.Errorf("the store ends at offset %d of epoch %d, %s says that offset %d of epoch %d was durable",
			s.Offset, s.Epoch, datadir.MarkFile, last.Offset, last.Epoch), "the store"), fs, dir, s.Logs)
	}
	found.Lost = behind
	if n := len(s.Logs); n > 0 {
		if found, err = cutOff(fs, dir, found, s.Logs[n-1]); err != nil {
			return found, err
		}
	}
	return recallCut(fs, dir, found)
}

// Surveyed is where a store ends.
type Surveyed struct {
	Epoch, Offset uint64
	Logs          []WAL
}

// Survey reads a store without writing: its tables through Pebble, its logs
// directly. It checks that the logs continue where the tables end: Pebble treats a
// damaged MANIFEST as a shorter one, and would then delete the tables that are
// not in it.
func Survey(dir string, opts Options) (s Surveyed, err error) {
	fs := opts.FS
	store := fs.PathJoin(dir, datadir.StoreDir)
	if err := ScanManifest(fs, store); err != nil {
		return s, err
	}
	if s.Logs, err = ScanWALs(fs, store); err != nil {
		return s, err
	}
	if s.Epoch, s.Offset, err = peek(View{FS: fs, hideLogs: true}, dir, opts); err != nil {
		return s, NameFile(err, fs, dir, s.Logs)
	}
	for i, w := range s.Logs {
		if w.first > s.Offset+1 {
			return s, NameFile(layout.Damaged(fmt.Errorf("commits %d to %d are missing", s.Offset+1, w.first-1), "the store"), fs, dir, s.Logs[:i])
		}
		s.Offset = max(s.Offset, w.last)
		s.Epoch = max(s.Epoch, w.epoch)
	}
	return s, nil
}

// cutOff adds the unused end of the last log to found. It removes that end if Pebble
// would refuse to open because of it, or treat it as a clean end.
func cutOff(fs vfs.FS, dir string, found Recovery, w WAL) (Recovery, error) {
	cut, data, err := w.Unused(fs)
	if err != nil || cut == nil {
		return found, err
	}
	found.Cuts = append(found.Cuts, *cut)
	if !w.Proven {
		return found, nil
	}
	found.Lost = true
	if err := storefs.WriteFile(fs, dir, cutName(fs, w), data[w.Stop:w.Stop+cut.Bytes]); err != nil {
		return found, err
	}
	if err := noteCut(fs, dir, *cut); err != nil {
		return found, err
	}
	return found, storefs.WriteFile(fs, fs.PathJoin(dir, datadir.StoreDir), fs.PathBase(w.Path), data[:w.Stop])
}

// Unused returns the end of a log that recovery does not use, and the contents of the
// log. It returns nil if the log ends properly, in preallocated space, or in the
// remains of an older log.
func (w WAL) Unused(fs vfs.FS) (*Cut, []byte, error) {
	if w.Err == nil && w.Beyond == 0 {
		return nil, nil, nil
	}
	data, err := storefs.ReadFile(fs, w.Path)
	if err != nil {
		return nil, nil, err
	}
	end := max(w.Beyond, tornEnd(data, w.Stop))
	if end <= w.Stop {
		return nil, nil, nil
	}
	return &Cut{File: fs.PathBase(w.Path), Offset: w.Stop, Bytes: end - w.Stop}, data, nil
}

// cutName names the file that keeps what was cut off.
func cutName(fs vfs.FS, w WAL) string {
	return fmt.Sprintf("CUT-%s-%d", strings.TrimSuffix(fs.PathBase(w.Path), ".log"), w.Stop)
}

// tornEnd returns the end of the bytes after stop that were written to this log, in the
// block where the log stops: bytes that are not zero, unless they are of an older log.
func tornEnd(data []byte, stop int64) int64 {
	if stop >= int64(len(data)) {
		return stop
	}
	block := (stop/walchunk.Block + 1) * walchunk.Block
	rest := data[stop:min(block, int64(len(data)))]
	length := len(bytes.TrimRight(rest, "\x00"))
	for i := range length {
		if walchunk.Begins(rest[i:]) {
			return stop
		}
	}
	if block < int64(len(data)) && walchunk.Begins(data[block:min(int(block)+walchunk.Block, len(data))]) {
		return stop
	}
	return stop + int64(length)
}

// peek opens a store without writing, reads the keys that opening needs, and
// returns its epoch and last offset.
func peek(fs vfs.FS, dir string, opts Options) (epoch, offset uint64, err error) {
	opts.FS = fs
	p := opts.Quietly()
	p.ReadOnly = true
	db, err := Open(fs, dir, p)
	if err != nil {
		return 0, 0, err
	}
	epoch, offset, err = ReadPlace(db)
	if err == nil {
		_, err = Removals(db)
	}
	if err == nil {
		_, err = Has(db, layout.KeyIndex)
	}
	return epoch, offset, errors.Join(err, db.Close())
}

// NameFile adds the damaged file to an error of the whole store: the first log that
// does not end properly. If all do, either the last log lacks its end or the MANIFEST
// does; these cannot be told apart, so the error names both.
func NameFile(err error, fs vfs.FS, dir string, ends []WAL) error {
	for i, w := range ends {
		if w.Proven || (w.Err != nil && i < len(ends)-1) {
			return layout.Damaged(fmt.Errorf("unreadable at offset %d: %w", w.Stop, err), "%s", fs.PathBase(w.Path))
		}
	}
	var suspects []string
	if n := len(ends); n > 0 {
		suspects = append(suspects, fs.PathBase(ends[n-1].Path))
		if ends[n-1].Err != nil {
			return layout.Damaged(fmt.Errorf("it ends at offset %d: %w", ends[n-1].Stop, err), "%s", suspects[0])
		}
	}
	names, listErr := fs.List(fs.PathJoin(dir, datadir.StoreDir))
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	slices.Sort(names)
	for _, file := range slices.Backward(names) {
		if strings.HasPrefix(file, "MANIFEST-") {
			suspects = append(suspects, file)
			break
		}
	}
	return layout.Damaged(err, "%s", strings.Join(suspects, " or "))
}
