package disk

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/compaction"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
	"github.com/parley-hub/parley/journal/internal/follow"
	"github.com/parley-hub/parley/journal/internal/order"
)

// headCache bounds the heads that are kept in memory.
const headCache = 8192

// Open opens a folder, and makes it if there is none. It reads neither logs nor
// heads.
func Open(dir string, opts Options) (*Engine, error) {
	opts = opts.WithDefaults()
	fs := opts.FS
	if err := storefs.MakeDir(fs, dir); err != nil {
		return nil, fmt.Errorf("data folder %s: %w", dir, err)
	}
	lock, err := lockDir(fs, dir)
	if err != nil {
		return nil, err
	}
	e, err := guarded(dir, opts, func(opts Options) (*Engine, error) { return openLocked(dir, opts) })
	if err != nil {
		err = fmt.Errorf("data folder %s: %w", dir, err)
		var left *leftBehindError
		if errors.As(err, &left) {
			return nil, err // something may still be writing: the lock is kept
		}
		return nil, errors.Join(err, lock.Close())
	}
	e.lock = lock
	e.start()
	return e, nil
}

func openLocked(dir string, opts Options) (*Engine, error) {
	fs := opts.FS
	if isNew, err := needsCreating(fs, dir); err != nil {
		return nil, err
	} else if isNew {
		if err := create(dir, opts); err != nil {
			return nil, err
		}
	}
	if err := checkFormat(fs, dir); err != nil {
		return nil, err
	}
	found, last, err := examine(dir, opts)
	if err != nil {
		return nil, err
	}
	if err := removeBackups(fs, dir); err != nil {
		return nil, err
	}
	e := newEngine(dir, opts)
	e.found = found
	logger := storeLogger{opts.Logger, func(err error) {
		e.wedged.Store(true)
		e.trip(err)
	}}
	p := opts.pebble(logger, e.events())
	p.FS = e.guard
	p.Experimental.CompactionScheduler = e.compactions
	if e.db, err = openStore(fs, dir, p); err != nil {
		if ends, scanErr := scanWALs(fs, fs.PathJoin(dir, storeDir)); scanErr == nil && pebble.IsCorruptionError(err) {
			err = name(err, fs, dir, ends)
		}
		return nil, err
	}
	if err := e.load(last); err != nil {
		if e.view != nil {
			e.view.release()
		}
		return nil, errors.Join(err, e.db.Close())
	}
	return e, nil
}

// openStore opens Pebble. A panic on damaged bytes becomes an error.
func openStore(fs vfs.FS, dir string, opts *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, layout.Damaged(fmt.Errorf("%v", p), "the store")
		}
	}()
	db, err = pebble.Open(fs.PathJoin(dir, storeDir), opts)
	return db, layout.StoreError(err)
}

func newEngine(dir string, opts Options) *Engine {
	e := &Engine{
		opts: opts, dir: dir, bell: follow.NewBell(),
		heads:   newCache[journal.LogName, order.Head](headCache),
		claims:  claimTable{size: opts.recentClaims},
		lazy:    map[journal.ValueKey]journal.Value{},
		room:    make(chan struct{}),
		wake:    make(chan struct{}, 1),
		dropped: make(chan struct{}, 1),
		rotated: make(chan struct{}, 1),
		trouble: make(chan error, 8),
		tasks:   make(chan func(error)),
		failed:  make(chan struct{}),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
		kept:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	e.snapshots = newSnapshots(opts.FS, dir, opts.SnapshotBytes)
	e.compactions = compaction.New(e.busy, e.backlog)
	e.guard = storefs.NewGuard(opts.storeFS(), opts.FS.PathJoin(dir, storeDir), e.report, e.gotOn, e.opened.TurnTo)
	return e
}

// needsCreating tells a folder that is to be made from one that has lost
// something. FORMAT is written before the store gets its name.
func needsCreating(fs vfs.FS, dir string) (bool, error) {
	if err := checkFinished(fs, dir); err != nil {
		return false, err
	}
	store := storefs.Exists(fs, fs.PathJoin(dir, storeDir))
	format := storefs.Exists(fs, fs.PathJoin(dir, formatFile))
	unfinished := storefs.Exists(fs, fs.PathJoin(dir, storeDir+".new"))
	switch {
	case store && !format:
		return false, layout.Damaged(errors.New("it is missing"), "%s", formatFile)
	case !store && format && !unfinished:
		return false, layout.Damaged(errors.New("it is missing"), "%s", storeDir)
	}
	return !store, nil
}

// create makes an empty store under another name, so that a crash in the middle
// leaves nothing that looks like one. Pebble is opened twice: the log of a new
// store's first open has no sync chunks, without which damage in the middle of
// it looks like its end.
func create(dir string, opts Options) error {
	fs := opts.FS
	unfinished := fs.PathJoin(dir, storeDir+".new")
	if err := fs.RemoveAll(unfinished); err != nil {
		return err
	}
	if err := fs.MkdirAll(unfinished, 0o750); err != nil {
		return err
	}
	for range 2 {
		db, err := pebble.Open(unfinished, opts.quietly())
		if err != nil {
			return err
		}
		b := db.NewBatch()
		_ = b.Set(layout.KeyEpoch, layout.AppendNumber(nil, layout.KeyEpoch, 1), nil)
		_ = b.Set(layout.KeyIndex, layout.AppendNumber(nil, layout.KeyIndex, 1), nil)
		if err := errors.Join(db.Apply(b, pebble.Sync), db.Flush(), db.Close()); err != nil {
			return err
		}
	}
	if err := createMark(fs, dir, 1, 0); err != nil {
		return err
	}
	if err := storefs.WriteFile(fs, dir, formatFile, formatText(formatVersion)); err != nil {
		return err
	}
	if err := fs.Rename(unfinished, fs.PathJoin(dir, storeDir)); err != nil {
		return err
	}
	return storefs.SyncDir(fs, dir)
}

// load reads what the engine needs to know of its store.
func (e *Engine) load(last mark) error {
	e.view = &view{engine: e, snap: e.db.NewSnapshot(), hidden: map[order.ID]struct{}{}}
	e.view.refs.Store(1)
	var err error
	if e.epoch, e.view.offset, err = readPlace(e.view.snap); err != nil {
		return err
	}
	if e.found.Lost {
		if err := e.newEpoch(last); err != nil {
			return err
		}
	}
	e.durable.Store(e.view.offset)
	e.claims.reset(e.view.number)
	e.book = order.NewBook(base{e}, 0, journal.ShardPosition{Epoch: e.epoch, Offset: e.view.offset}, 1)
	e.group = e.newGroup()
	if e.jobs, err = loadRemovals(e.view.snap); err != nil {
		return err
	}
	for _, j := range e.jobs {
		e.book.Resume(j.removal)
		for _, r := range j.ids {
			e.view.hidden[r.ID] = struct{}{}
		}
	}
	whole, err := has(e.view.snap, layout.KeyIndex)
	if err != nil {
		return err
	}
	if !whole {
		view, err := e.rebuild()
		if err != nil {
			return fmt.Errorf("rebuilding the index: %w", err)
		}
		e.view.release()
		e.view = view
		e.found.Reindexed = true
	}
	if e.mark, err = openMark(e.opts.FS, e.dir, last); err != nil {
		return err
	}
	if err := e.mark.write(e.epoch, e.view.offset); err != nil {
		return err
	}
	fs := e.opts.FS
	if err := e.opened.Begin(fs, e.dir, fs.PathJoin(e.dir, storeDir), fs.PathJoin(e.dir, markFile), fs.PathJoin(e.dir, lockFile)); err != nil {
		return err
	}
	return settleCut(e.opts.FS, e.dir)
}

// has reports whether there is a key.
func has(r pebble.Reader, key []byte) (bool, error) {
	_, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the metadata of the store: %w", layout.StoreError(err))
	}
	return true, closer.Close()
}

// newEpoch makes positions of what is lost invalid.
func (e *Engine) newEpoch(last mark) error {
	e.epoch = max(e.epoch, last.epoch) + 1
	b := e.db.NewBatch()
	_ = b.Set(layout.KeyEpoch, layout.AppendNumber(nil, layout.KeyEpoch, e.epoch), nil)
	return e.write(b, true)
}

// readPlace reads epoch and last offset. It looks at single keys only, so that
// damage elsewhere does not matter to it.
func readPlace(r pebble.Reader) (epoch, offset uint64, err error) {
	if epoch, err = readNumber(r, layout.KeyEpoch); err == nil && epoch == 0 {
		err = layout.Damaged(errors.New("it is missing"), "the epoch")
	}
	if err != nil {
		return 0, 0, err
	}
	offset, err = readNumber(r, layout.KeyLast)
	return epoch, offset, err
}

// readNumber returns 0 when there is none.
func readNumber(r pebble.Reader, key []byte) (uint64, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the metadata of the store: %w", layout.StoreError(err))
	}
	n, err := layout.DecodeNumber(key, value)
	if err != nil {
		err = layout.Damaged(err, "the metadata of the store")
	}
	return n, errors.Join(err, closer.Close())
}

// start begins the engine's goroutines; Close waits for them.
func (e *Engine) start() {
	e.compactions.Begin()
	e.compactions.KeepOffering()
	e.measureRoom(0)
	e.helpers.Add(3)
	go e.keepLoop()
	go e.markLoop()
	go e.removeLoop()
	go e.tidyLoop()
	go e.commitLoop()
}
