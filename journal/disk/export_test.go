package disk

import (
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/store"
)

// Tuned returns options that change Pebble's options with tune.
func (o Options) Tuned(tune func(*pebble.Options)) Options {
	o.tune = tune
	return o
}

// Measured returns options under which the free disk space is measured before each
// group.
func (o Options) Measured() Options {
	o.measureEvery = -1
	return o
}

// Checked returns options under which the files are checked with each group.
func (o Options) Checked() Options {
	o.checkEvery = -1
	return o
}

// CheckedRarely returns options under which the files are checked only when a log
// begins.
func (o Options) CheckedRarely() Options {
	o.checkEvery = time.Hour
	return o
}

// FewClaims returns options under which few claims and heads are kept in memory, and
// sieves are made at once.
func (o Options) FewClaims() Options {
	o.recentClaims, o.recentHeads = 4, 4
	o.sieveWorth, o.sieveFirst = 1, 4
	return o
}

// MarkSoon makes the engine write MARK as it does when Pebble begins a log.
func (e *Engine) MarkSoon() { signal(e.rotated) }

// MarkedOffset reads the offset in a folder's MARK.
func MarkedOffset(fs vfs.FS, dir string) uint64 {
	m, err := datadir.ReadMark(fs, dir)
	if err != nil {
		return 0
	}
	return m.Offset
}

// FlushStore writes Pebble's in-memory table to a table file.
func (e *Engine) FlushStore() error { return e.db.Flush() }

// ShareLock reports whether another process holds a lock.
func ShareLock(path string) (busy bool) {
	lock, busy := datadir.ShareLock(path)
	if !busy {
		_ = lock.Close()
	}
	return busy
}

// CompactStore compacts the whole store into one table.
func (e *Engine) CompactStore() error {
	return e.db.Compact(context.Background(), []byte{0}, []byte{0xff}, false)
}

// FormatVersion is the format that this version writes.
const FormatVersion = datadir.FormatVersion

// StoredClaims counts the claims in the store, expired or not, and the expiry keys.
func (e *Engine) StoredClaims() (claims, expiries int, err error) {
	for kind, n := range map[byte]*int{layout.KindClaim: &claims, layout.KindExpiry: &expiries} {
		err = store.ScanRange(e.db, []byte{kind}, []byte{kind + 1}, func(_, _ []byte) error {
			*n++
			return nil
		})
		if err != nil {
			return 0, 0, err
		}
	}
	return claims, expiries, nil
}

// Sifted reports whether the engine has sieves of its claims and logs.
func (e *Engine) Sifted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sieves.heads.ready != nil && e.sieves.claims.ready != nil
}

// Busy reports whether batches are arriving, so that compactions wait.
func (e *Engine) Busy() bool { return e.busy() }
