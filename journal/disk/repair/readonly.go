package repair

import (
	"io"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/store"
	"github.com/parley-hub/parley/journal/internal/order"
)

// openReadOnly locks a data folder of this format that no process has open. The
// options it returns read the folder and refuse to write to it.
func openReadOnly(dir string, options disk.Options) (store.Options, io.Closer, error) {
	opts := options.Store()
	if err := datadir.Check(opts.FS, dir); err != nil {
		return opts, nil, err
	}
	if err := datadir.CheckFormat(opts.FS, dir); err != nil {
		return opts, nil, err
	}
	lock, err := datadir.LockReadOnly(opts.FS, dir)
	if err != nil {
		return opts, nil, err
	}
	opts.FS = datadir.ReadOnlyFS{FS: opts.FS}
	return opts, lock, nil
}

// decodeHead reads the name and the head of a log.
func decodeHead(key, value []byte) (journal.LogName, order.Head, error) {
	name, _, err := journal.CutLogName(key[1:])
	if err != nil {
		return name, order.Head{}, layout.Damaged(err, "the key %x", key)
	}
	head, err := layout.DecodeHead(key, value)
	if err != nil {
		return name, order.Head{}, layout.Damaged(err, "the head of log %v", name)
	}
	return name, head, nil
}
