package disk

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/backup"
	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/store"
)

// Options configure an engine. The zero value uses the defaults.
type Options struct {
	FS     vfs.FS           // nil: the operating system's
	Now    func() time.Time // decides which claims have expired; nil: time.Now
	Logger *slog.Logger     // nil: nothing is logged

	MaxUnsynced  int64         // ordered bytes that are not durable before Append waits, and bytes of unsaved lazy values before PutLazy waits; 0: 16 MiB
	MinFree      int64         // with less free disk space, appends and values are refused; with less than a quarter of it, all writes and opening; 0: 512 MiB, negative: never
	StallLimit   time.Duration // a write that Pebble holds back longer fails the engine; 0: 5 s
	SyncLimit    time.Duration // a commit that takes longer fails the engine, and so does other work without progress for longer; 0: 30 s
	CacheBytes   int64         // of blocks of tables; 0: 16 MiB, negative: next to none
	MemTableSize uint64        // bytes of one in-memory table, of which there are two; 0: 4 MiB

	// SnapshotBytes bounds the total size of the snapshots; the oldest are
	// removed first. 0: 1 GiB.
	SnapshotBytes int64

	// RecentBytes bounds the newest commits that are kept in memory while the
	// shard is followed; a follower that is further behind reads the store. 0: 4 MiB.
	RecentBytes int64

	// AcceptLoss opens a store that ends before its MARK, in a new epoch. It
	// is for an operator who has no better copy.
	AcceptLoss bool

	recentClaims int           // claims that one generation of claimTable holds; 0: 8192
	recentHeads  int           // heads of logs that one generation of the cache holds; 0: headCache
	sieveWorth   int           // lookups without a result after which a sieve is made; 0: 4096
	sieveFirst   int           // minimum number of names that a sieve has room for; 0: 32768
	checkEvery   time.Duration // how often the committer checks that the files are the ones that were opened; 0: 100 ms
	measureEvery time.Duration // how often the committer measures the free disk space; 0: 10 ms

	tune func(*pebble.Options) // for tests
}

// WithDefaults returns the options with zeros replaced by the defaults.
func (o Options) WithDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.MaxUnsynced = cmp.Or(o.MaxUnsynced, 16<<20)
	o.MinFree = cmp.Or(o.MinFree, 512<<20)
	o.StallLimit = cmp.Or(o.StallLimit, 5*time.Second)
	o.SyncLimit = cmp.Or(o.SyncLimit, 30*time.Second)
	o.CacheBytes = cmp.Or(o.CacheBytes, 16<<20)
	o.MemTableSize = cmp.Or(o.MemTableSize, 4<<20)
	o.SnapshotBytes = cmp.Or(o.SnapshotBytes, 1<<30)
	o.RecentBytes = cmp.Or(o.RecentBytes, 4<<20)
	o.recentClaims = cmp.Or(o.recentClaims, 8192)
	o.recentHeads = cmp.Or(o.recentHeads, headCache)
	o.sieveWorth = cmp.Or(o.sieveWorth, 1<<12)
	o.sieveFirst = cmp.Or(o.sieveFirst, 1<<15)
	o.checkEvery = cmp.Or(o.checkEvery, checkInterval)
	o.measureEvery = cmp.Or(o.measureEvery, 10*time.Millisecond)
	return o
}

// Store returns the options for work on a store without an engine. It is for
// package repair.
func (o Options) Store() store.Options {
	o = o.WithDefaults()
	return store.Options{
		FS: o.FS, Logger: o.Logger, MinFree: o.MinFree, SyncLimit: o.SyncLimit,
		CacheBytes: o.CacheBytes, MemTableSize: o.MemTableSize, AcceptLoss: o.AcceptLoss, Tune: o.tune,
	}
}

// FormatError is the error for a folder that a newer version has written.
type FormatError = datadir.FormatError

// InUseError is the error for a folder that another process has open.
type InUseError = datadir.InUseError

// Recovery is what opening found.
type Recovery = store.Recovery

// Cut is the end of a file that recovery did not use.
type Cut = store.Cut

// Progress is a function that receives the progress of a long task. Total is 0
// while it is not known.
type Progress = backup.Progress
