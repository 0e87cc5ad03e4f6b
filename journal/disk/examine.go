package disk

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
	"github.com/parley-hub/parley/journal/disk/internal/walchunk"
)

// Recovery tells what opening found.
type Recovery struct {
	Clean     bool  // the store was closed cleanly
	Cuts      []Cut // what was cut off because it was torn or damaged
	Lost      bool  // durable data is gone, and the epoch is new
	Reindexed bool  // the index was made anew
}

// Cut is an end of a file that was not used.
type Cut struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
}

func (c Cut) String() string {
	return fmt.Sprintf("%s is cut at offset %d, %d bytes are not used", c.File, c.Offset, c.Bytes)
}

// examine looks at a store before it is opened for writing. It returns the
// last mark.
func examine(dir string, opts Options) (Recovery, mark, error) {
	fs := opts.FS
	var found Recovery
	last, err := readMark(fs, dir)
	if err != nil {
		return found, last, err
	}
	s, err := readSeal(fs, dir)
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
	if err := s.verify(fs, fs.PathJoin(dir, storeDir)); err != nil {
		return found, last, err
	}
	if _, _, err := peek(fs, dir, opts); err != nil { // before anything is written
		return found, last, err
	}
	if s.epoch < last.epoch || (s.epoch == last.epoch && s.offset < last.offset) {
		return found, last, layout.Damaged(fmt.Errorf("it ends at offset %d of epoch %d, %s says %d of %d",
			s.offset, s.epoch, markFile, last.offset, last.epoch), "%s", sealFile)
	}
	found.Clean = true
	if err := fs.Remove(fs.PathJoin(dir, sealFile)); err != nil {
		return found, last, err
	}
	return found, last, storefs.SyncDir(fs, dir)
}

// compare checks that a store which was not closed cleanly has everything that
// MARK says is durable.
func compare(dir string, opts Options, last mark) (Recovery, error) {
	fs := opts.FS
	var found Recovery
	s, err := survey(dir, opts)
	if err != nil {
		return found, err
	}
	behind := s.epoch < last.epoch || (s.epoch == last.epoch && s.offset < last.offset)
	if behind && !opts.AcceptLoss {
		return found, name(layout.Damaged(fmt.Errorf("the store ends at offset %d of epoch %d, %s says that offset %d of epoch %d was durable",
			s.offset, s.epoch, markFile, last.offset, last.epoch), "the store"), fs, dir, s.logs)
	}
	found.Lost = behind
	if n := len(s.logs); n > 0 {
		if found, err = cutOff(fs, dir, found, s.logs[n-1]); err != nil {
			return found, err
		}
	}
	return recallCut(fs, dir, found)
}

// surveyed is where a store ends.
type surveyed struct {
	epoch, offset uint64
	logs          []walEnd
}

// survey reads a store without writing: its tables through Pebble, its logs
// directly. It checks that the logs continue where the tables end: Pebble takes a
// damaged MANIFEST for a shorter one, and would then delete the tables that are
// not in it.
func survey(dir string, opts Options) (s surveyed, err error) {
	fs := opts.FS
	store := fs.PathJoin(dir, storeDir)
	if err := scanManifest(fs, store); err != nil {
		return s, err
	}
	if s.logs, err = scanWALs(fs, store); err != nil {
		return s, err
	}
	if s.epoch, s.offset, err = peek(storeView{FS: fs, hideLogs: true}, dir, opts); err != nil {
		return s, name(err, fs, dir, s.logs)
	}
	for i, w := range s.logs {
		if w.first > s.offset+1 {
			return s, name(layout.Damaged(fmt.Errorf("commits %d to %d are missing", s.offset+1, w.first-1), "the store"), fs, dir, s.logs[:i])
		}
		s.offset = max(s.offset, w.last)
		s.epoch = max(s.epoch, w.epoch)
	}
	return s, nil
}

// cutOff reports the unused end of the last log, and removes it where Pebble
// would refuse to open because of it, or take it for a clean end.
func cutOff(fs vfs.FS, dir string, found Recovery, w walEnd) (Recovery, error) {
	cut, data, err := w.unused(fs)
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
	return found, storefs.WriteFile(fs, fs.PathJoin(dir, storeDir), fs.PathBase(w.path), data[:w.Stop])
}

// unused is the end of a log that recovery does not use, and all of the log; nil
// when it ends as it should, or in preallocated room or what an older log left.
func (w walEnd) unused(fs vfs.FS) (*Cut, []byte, error) {
	if w.Err == nil && w.Beyond == 0 {
		return nil, nil, nil
	}
	data, err := storefs.ReadFile(fs, w.path)
	if err != nil {
		return nil, nil, err
	}
	end := max(w.Beyond, tornEnd(data, w.Stop))
	if end <= w.Stop {
		return nil, nil, nil
	}
	return &Cut{File: fs.PathBase(w.path), Offset: w.Stop, Bytes: end - w.Stop}, data, nil
}

// cutName names the file that keeps what was cut off.
func cutName(fs vfs.FS, w walEnd) string {
	return fmt.Sprintf("CUT-%s-%d", strings.TrimSuffix(fs.PathBase(w.path), ".log"), w.Stop)
}

// tornEnd is where bytes end that stand in the block where a log stops and were
// meant for it: those that are not zero, unless they are an older log's.
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

// peek opens a store without writing, reads what opening will need of it, and
// returns its epoch and last offset.
func peek(fs vfs.FS, dir string, opts Options) (epoch, offset uint64, err error) {
	opts.FS = fs
	p := opts.quietly()
	p.ReadOnly = true
	db, err := openStore(fs, dir, p)
	if err != nil {
		return 0, 0, err
	}
	epoch, offset, err = readPlace(db)
	if err == nil {
		_, err = loadRemovals(db)
	}
	if err == nil {
		_, err = has(db, layout.KeyIndex)
	}
	return epoch, offset, errors.Join(err, db.Close())
}

// name says which file an error of the whole store is about: the first log that
// does not end as it should. When all do, the last log lacks its end, or the
// MANIFEST has lost what came after it; nothing tells them apart.
func name(err error, fs vfs.FS, dir string, ends []walEnd) error {
	for i, w := range ends {
		if w.Proven || (w.Err != nil && i < len(ends)-1) {
			return layout.Damaged(fmt.Errorf("unreadable at offset %d: %w", w.Stop, err), "%s", fs.PathBase(w.path))
		}
	}
	var suspects []string
	if n := len(ends); n > 0 {
		suspects = append(suspects, fs.PathBase(ends[n-1].path))
		if ends[n-1].Err != nil {
			return layout.Damaged(fmt.Errorf("it ends at offset %d: %w", ends[n-1].Stop, err), "%s", suspects[0])
		}
	}
	names, listErr := fs.List(fs.PathJoin(dir, storeDir))
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
