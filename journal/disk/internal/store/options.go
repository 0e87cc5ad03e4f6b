// Package store opens Pebble, and checks a store before or without opening it: it
// finds damage that Pebble's own recovery would lose or misinterpret. It does not
// depend on an engine.
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

// Options configure how a store is opened. They have no defaults.
type Options struct {
	FS           vfs.FS
	Logger       *slog.Logger
	MinFree      int64         // with less free disk space than a quarter of this, a store is not opened; negative: always opened
	SyncLimit    time.Duration // work without progress for longer has failed
	CacheBytes   int64         // of blocks of tables
	MemTableSize uint64
	AcceptLoss   bool                  // a store that ends before its MARK is opened, in a new epoch
	Tune         func(*pebble.Options) // for tests

	Guard *storefs.OpenGuard // of work without an engine; nil: an engine handles errors
}

// cacheSize returns the size of Pebble's cache. Pebble counts its in-memory tables
// against it, so two of them are added to CacheBytes; otherwise no block of a filter
// or an index would stay in memory.
func (o *Options) cacheSize() int64 {
	if o.CacheBytes < 0 {
		return 4 << 10
	}
	return o.CacheBytes + 2*int64(o.MemTableSize)
}

// Format is the Pebble format that this version writes. It only goes up,
// together with FormatVersion.
const Format = pebble.FormatValueSeparation

// flushedSize returns the size of the tables that a flush writes; compactions write
// tables of at least twice the size. Every flush has keys of all kinds, from commits to
// values. As one table it would overlap the whole store, and each compaction would write
// the whole store again. A small table overlaps only keys near its own, for example the
// end of a growing log.
func (o *Options) flushedSize() int64 { return min(int64(o.MemTableSize)/4, 1<<20) }

// unmerged is how many bytes the first level usually holds before it is compacted.
const unmerged = 32 << 20

// Quietly returns Pebble's options for short work on a store. Pebble then reads no
// tables for its statistics: whether it finds their damage would depend on timing.
func (o *Options) Quietly() *pebble.Options {
	p := o.Pebble(Logger{o.Logger, func(err error) { o.Guard.Fail(err) }}, nil)
	p.DisableTableStats = true
	return p
}

// GuardedFS returns the file system that Pebble uses.
func (o *Options) GuardedFS() vfs.FS {
	return o.Guard.FS(o.FS)
}

// Pebble returns Pebble's options for a store. They do not depend on the data.
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
