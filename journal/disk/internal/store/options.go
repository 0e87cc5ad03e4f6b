// Package store opens Pebble, and looks at a store before and without that: what
// Pebble's own recovery would lose or take for something else is found here. It
// knows no engine.
package store

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

// Options say how a store is opened. They have no defaults of their own.
type Options struct {
	FS           vfs.FS
	Logger       *slog.Logger
	MinFree      int64         // below a quarter of this much room on the disk a store is not opened; negative: always
	SyncLimit    time.Duration // work that does not get on for longer has failed
	CacheBytes   int64         // of blocks of tables
	MemTableSize uint64
	AcceptLoss   bool                  // a store that ends before its MARK is opened, in a new epoch
	Tune         func(*pebble.Options) // for tests

	Guard *storefs.OpenGuard // of work without an engine; nil: an engine handles errors
}

// cacheSize is the size of Pebble's cache. Pebble counts its tables in memory
// against it, so there is room for two of them beside CacheBytes; without it no
// block of a filter or an index would stay in memory.
func (o *Options) cacheSize() int64 {
	if o.CacheBytes < 0 {
		return 4 << 10
	}
	return o.CacheBytes + 2*int64(o.MemTableSize)
}

// Format is the Pebble format that this version writes. It only goes up,
// together with FormatVersion.
const Format = pebble.FormatValueSeparation

// flushedSize is the size of the tables that a flush writes; compactions write tables
// of at least twice the size. Every flush has keys of all kinds, from commits to values.
// As one table it would overlap the whole store, and each compaction would write the
// whole store again. A small table overlaps only what is near its keys: of a log that
// grows, its end.
func (o *Options) flushedSize() int64 { return min(int64(o.MemTableSize)/4, 1<<20) }

// unmerged is how much the first level holds, as a rule, before it is compacted.
const unmerged = 32 << 20

// Quietly returns the store's options for short work on it. Tables that the work does
// not ask for are not read: whether their damage is found would depend on time.
func (o *Options) Quietly() *pebble.Options {
	p := o.Pebble(Logger{o.Logger, func(err error) { o.Guard.Fail(err) }}, nil)
	p.DisableTableStats = true
	return p
}

// GuardedFS is the file system that Pebble uses.
func (o *Options) GuardedFS() vfs.FS {
	return o.Guard.FS(o.FS)
}

// Pebble returns the store's options. Nothing in them depends on the data.
func (o *Options) Pebble(logger pebble.Logger, events *pebble.EventListener) *pebble.Options {
	if events == nil {
		// Without this, Pebble's own reaction to damage is a fatal message.
		events = &pebble.EventListener{
			DataCorruption:  func(pebble.DataCorruptionInfo) {},
			BackgroundError: func(err error) { o.Guard.Fail(fmt.Errorf("flushing or compacting: %w", layout.StoreError(err))) },
		}
	}
	p := &pebble.Options{
		FS:                          storefs.Ordered{FS: o.GuardedFS()},
		Logger:                      logger,
		EventListener:               events,
		FormatMajorVersion:          Format,
		CacheSize:                   o.cacheSize(),
		MemTableSize:                o.MemTableSize,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       int(min(max(unmerged/max(o.MemTableSize, 1), 4), 8)),
		L0StopWritesThreshold:       100,
		FlushSplitBytes:             o.flushedSize(),
		LBaseMaxBytes:               512 << 20, // most stores have one level below the first
		MaxOpenFiles:                1024,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
	}
	p.TargetFileSizes[0] = o.flushedSize()
	for i := range p.Levels {
		p.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		p.Levels[i].BlockSize = 16 << 10
		p.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
	}
	// Tables of the first level are soon rewritten by a compaction.
	p.Levels[0].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
	p.Experimental.FileCacheShards = 2
	if o.Tune != nil {
		o.Tune(p)
	}
	return p
}
