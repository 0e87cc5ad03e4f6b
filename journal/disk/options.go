package disk

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// Options for an engine. The zero value is a good one.
type Options struct {
	FS     vfs.FS           // nil: the operating system's
	Now    func() time.Time // decides which claims have expired; nil: time.Now
	Logger *slog.Logger     // nil: nothing is logged

	MaxUnsynced  int64         // bytes ordered and not durable before Append waits, of lazy values before PutLazy does; 0: 16 MiB
	MinFree      int64         // below this much room on the disk appends and values are refused, below a quarter all writing and opening; 0: 512 MiB, negative: never
	StallLimit   time.Duration // a write that Pebble holds back longer fails the engine; 0: 5 s
	SyncLimit    time.Duration // a commit that takes longer fails the engine, and so does other work that does not get on; 0: 30 s
	CacheBytes   int64         // of blocks of tables; 0: 16 MiB, negative: next to none
	MemTableSize uint64        // what is kept in memory before it becomes a table; 0: 16 MiB

	// SnapshotBytes bounds the snapshots that are kept, all together; the oldest
	// go first. 0: 1 GiB.
	SnapshotBytes int64

	// AcceptLoss opens a store that ends before its MARK, in a new epoch. It
	// is for an operator who has no better copy.
	AcceptLoss bool

	recentClaims int           // claims that one generation of the table of recent ones holds; 0: 8192
	checkEvery   time.Duration // how often the committer checks that the files are the ones that were opened; 0: 100 ms
	measureEvery time.Duration // how often the committer looks at the disk's room; 0: 10 ms

	guard *storefs.OpenGuard // of work without an engine; nil: an engine handles errors

	tune func(*pebble.Options) // for tests
}

// WithDefaults replaces zeros.
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
	o.MaxUnsynced = orDefault(o.MaxUnsynced, 16<<20)
	o.MinFree = orDefault(o.MinFree, 512<<20)
	o.StallLimit = orDefault(o.StallLimit, 5*time.Second)
	o.SyncLimit = orDefault(o.SyncLimit, 30*time.Second)
	o.CacheBytes = orDefault(o.CacheBytes, 16<<20)
	o.MemTableSize = orDefault(o.MemTableSize, 16<<20)
	o.SnapshotBytes = orDefault(o.SnapshotBytes, 1<<30)
	o.recentClaims = orDefault(o.recentClaims, 8192)
	o.checkEvery = orDefault(o.checkEvery, checkInterval)
	o.measureEvery = orDefault(o.measureEvery, 10*time.Millisecond)
	return o
}

func orDefault[T int | int64 | uint64 | time.Duration](v, whenZero T) T {
	if v == 0 {
		return whenZero
	}
	return v
}

// cacheSize is the size of Pebble's cache. Pebble counts its tables in memory
// against it, so there is room for two of them beside CacheBytes; without it no
// block of a filter or an index would stay in memory.
func (o Options) cacheSize() int64 {
	if o.CacheBytes < 0 {
		return 4 << 10
	}
	return o.CacheBytes + 2*int64(o.MemTableSize)
}

// storeFormat is the Pebble format that this version writes. It only goes up,
// together with formatVersion.
const storeFormat = pebble.FormatValueSeparation

// quietly returns the store's options for short work on it.
func (o Options) quietly() *pebble.Options {
	return o.pebble(storeLogger{o.Logger, func(err error) { o.guard.Fail(err) }}, nil)
}

// storeFS is the file system that Pebble uses.
func (o Options) storeFS() vfs.FS {
	return o.guard.FS(o.FS)
}

// pebble returns the store's options. Nothing in them depends on the data.
func (o Options) pebble(logger pebble.Logger, events *pebble.EventListener) *pebble.Options {
	if events == nil {
		// Without this, Pebble's own reaction to damage is a fatal message.
		events = &pebble.EventListener{
			DataCorruption:  func(pebble.DataCorruptionInfo) {},
			BackgroundError: func(err error) { o.guard.Fail(fmt.Errorf("flushing or compacting: %w", layout.StoreError(err))) },
		}
	}
	p := &pebble.Options{
		FS:                          storefs.Ordered{FS: o.storeFS()},
		Logger:                      logger,
		EventListener:               events,
		FormatMajorVersion:          storeFormat,
		CacheSize:                   o.cacheSize(),
		MemTableSize:                o.MemTableSize,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       100,
		LBaseMaxBytes:               512 << 20, // most stores have one level below the first
		MaxOpenFiles:                1024,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
	}
	p.TargetFileSizes[0] = int64(o.MemTableSize) // a flush makes one table
	for i := range p.Levels {
		p.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		p.Levels[i].BlockSize = 16 << 10
		p.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
	}
	// Tables of the first level are soon rewritten by a compaction.
	p.Levels[0].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
	p.Experimental.FileCacheShards = 2
	if o.tune != nil {
		o.tune(p)
	}
	return p
}
