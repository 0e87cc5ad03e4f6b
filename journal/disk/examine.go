package disk

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Recovery tells what opening found.
type Recovery struct {
	Clean     bool  // the store was closed cleanly
	Cuts      []Cut // what was cut off because it was damaged or torn
	Lost      bool  // durable data is gone, and the epoch is new
	Reindexed bool  // the index was made anew
}

// Cut is an end of a file that was not used.
type Cut struct {
	File   string
	Offset int64
	Bytes  int64
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
	store := fs.PathJoin(dir, storeDir)
	s, err := readSeal(fs, dir)
	if err != nil {
		return found, last, err
	}
	if s != nil {
		if err := s.verify(fs, store); err != nil {
			return found, last, err
		}
		if s.epoch < last.epoch || (s.epoch == last.epoch && s.offset < last.offset) {
			return found, last, damaged(fmt.Errorf("it ends at offset %d of epoch %d, %s says %d of %d",
				s.offset, s.epoch, markFile, last.offset, last.epoch), "%s", sealFile)
		}
		found.Clean = true
		if err := fs.Remove(fs.PathJoin(dir, sealFile)); err != nil {
			return found, last, err
		}
		return found, last, syncDir(fs, dir)
	}
	err = compare(dir, opts, last, &found)
	return found, last, err
}

// compare opens a store that was not closed cleanly without writing, and sees
// whether all that MARK says is there.
func compare(dir string, opts Options, last mark, found *Recovery) error {
	epoch, offset, err := peek(opts.FS, dir, opts)
	if err != nil {
		return err
	}
	if epoch > last.epoch || (epoch == last.epoch && offset >= last.offset) {
		return nil
	}
	if opts.AcceptLoss {
		found.Lost = true
		return nil
	}
	return damaged(fmt.Errorf("it ends at offset %d of epoch %d, %s says that offset %d of epoch %d was durable",
		offset, epoch, markFile, last.offset, last.epoch), "the store")
}

// peek reads epoch and last offset without writing.
func peek(fs vfs.FS, dir string, opts Options) (epoch, offset uint64, err error) {
	opts.FS = fs
	p := opts.pebble(storeLogger{opts.Logger, func(error) {}}, nil)
	p.ReadOnly = true
	db, err := openStore(fs, dir, p)
	if err != nil {
		return 0, 0, err
	}
	epoch, offset, err = readPlace(db)
	return epoch, offset, errors.Join(err, db.Close())
}
