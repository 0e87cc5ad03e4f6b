package store

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
)

// Open opens Pebble. A panic on damaged bytes becomes an error.
func Open(fs vfs.FS, dir string, opts *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, layout.Damaged(fmt.Errorf("%v", p), "the store")
		}
	}()
	db, err = pebble.Open(fs.PathJoin(dir, datadir.StoreDir), opts)
	return db, layout.StoreError(err)
}
