package disk

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/compaction"
	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/store"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
	"github.com/parley-hub/parley/journal/internal/follow"
	"github.com/parley-hub/parley/journal/internal/order"
)

// headCache bounds the heads that are kept in memory.
const headCache = 8192

// Open opens a folder, and creates it if it does not exist. It reads neither logs
// nor heads.
func Open(dir string, opts Options) (*Engine, error) { return open(dir, opts, nil) }

// open opens a store, as a copy if c is not nil.
func open(dir string, opts Options, c *copying) (*Engine, error) {
	opts = opts.WithDefaults()
	if c != nil {
		opts.AcceptLoss = true // the log that the store is a copy of has the missing data
	}
	fs := opts.FS
	if err := storefs.MakeDir(fs, dir); err != nil {
		return nil, fmt.Errorf("data folder %s: %w", dir, err)
	}
	lock, err := datadir.Lock(fs, dir)
	if err != nil {
		return nil, err
	}
	e, err := store.Guarded(dir, opts.Store(), func(storeOpts store.Options) (*Engine, error) { return openLocked(dir, opts, storeOpts, c) })
	if err != nil {
		err = fmt.Errorf("data folder %s: %w", dir, err)
		if _, ok := errors.AsType[*store.LeftBehindError](err); ok {
			return nil, err // something may still be writing: the lock is kept
		}
		return nil, errors.Join(err, lock.Close())
	}
	e.lock = lock
	e.start()
	return e, nil
}

func openLocked(dir string, opts Options, storeOpts store.Options, c *copying) (*Engine, error) {
	fs := opts.FS
	if isNew, err := store.NeedsCreating(fs, dir); err != nil {
		return nil, err
	} else if isNew {
		if err := store.Create(dir, storeOpts); err != nil {
			return nil, err
		}
	}
	if err := datadir.CheckFormat(fs, dir); err != nil {
		return nil, err
	}
	found, last, err := store.Examine(dir, storeOpts)
	if err != nil {
		return nil, err
	}
	if err := removeBackups(fs, dir); err != nil {
		return nil, err
	}
	e := newEngine(dir, opts, storeOpts)
	e.found = found
	if c != nil {
		e.copy, e.shard, e.persist = c, c.shard, e.ship
		e.notMine = &journal.NotMineError{Shard: c.shard}
	}
	logger := store.Logger{Logger: opts.Logger, Fatal: func(err error) {
		e.wedged.Store(true)
		e.trip(err)
	}}
	p := storeOpts.Pebble(logger, e.events())
	p.FS = e.guard
	p.Experimental.CompactionScheduler = e.compactions
	if e.db, err = store.Open(fs, dir, p); err != nil {
		if ends, scanErr := store.ScanWALs(fs, fs.PathJoin(dir, datadir.StoreDir)); scanErr == nil && pebble.IsCorruptionError(err) {
			err = store.NameFile(err, fs, dir, ends)
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

func newEngine(dir string, opts Options, storeOpts store.Options) *Engine {
	e := &Engine{
		opts: opts, openGuard: storeOpts.Guard, dir: dir, bell: follow.NewBell(),
		heads:   newCache[journal.LogName, order.Head](opts.recentHeads),
		claims:  claimTable{size: opts.recentClaims},
		recent:  recent{limit: opts.RecentBytes},
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
	e.persist = e.sync
	e.snapshots = newSnapshots(opts.FS, dir, opts.SnapshotBytes)
	e.compactions = compaction.New(e.busy, e.backlog)
	e.guard = storefs.NewGuard(storeOpts.GuardedFS(), opts.FS.PathJoin(dir, datadir.StoreDir), e.report, e.gotOn, e.opened.TurnTo)
	return e
}

// load reads the state that the engine keeps in memory.
func (e *Engine) load(last datadir.Mark) error {
	e.view = &view{engine: e, snap: e.db.NewSnapshot(), hidden: map[order.ID]struct{}{}}
	e.view.refs.Store(1)
	var err error
	if e.epoch, e.view.offset, err = store.ReadPlace(e.view.snap); err != nil {
		return err
	}
	if e.found.Lost && e.copy == nil {
		if err := e.newEpoch(last); err != nil {
			return err
		}
	}
	e.durable.Store(e.view.offset)
	e.claims.reset(e.view.number)
	e.sieves.heads, e.sieves.claims = newSieve(layout.KindHead, &e.opts), newSieve(layout.KindClaim, &e.opts)
	e.group = e.newGroup()
	if e.view.hidden, err = e.renew(e.view, 1); err != nil {
		return err
	}
	whole, err := store.Has(e.view.snap, layout.KeyIndex)
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
	if err := datadir.RaiseFormat(e.opts.FS, e.dir); err != nil {
		return err
	}
	if e.mark, err = datadir.OpenMark(e.opts.FS, e.dir, last); err != nil {
		return err
	}
	if err := e.mark.Write(e.epoch, e.view.offset); err != nil {
		return err
	}
	fs := e.opts.FS
	if err := e.opened.Begin(fs, e.dir, fs.PathJoin(e.dir, datadir.StoreDir), fs.PathJoin(e.dir, datadir.MarkFile), fs.PathJoin(e.dir, datadir.LockFile)); err != nil {
		return err
	}
	return store.SettleCut(e.opts.FS, e.dir)
}

// renew begins to order after a view, with the unfinished removals of that view. It
// returns the logs that are being removed.
func (e *Engine) renew(v *view, term uint64) (map[order.ID]struct{}, error) {
	removals, err := store.Removals(v.snap)
	if err != nil {
		return nil, err
	}
	e.book = order.NewBook(base{e}, e.shard, journal.ShardPosition{Epoch: e.epoch, Offset: v.offset}, term)
	e.jobs = nil
	hidden := map[order.ID]struct{}{}
	for _, r := range removals {
		j := &job{removal: order.Removal{Offset: r.Offset, Log: r.Log}, ids: []layout.Removal{r}, durable: true}
		e.jobs = append(e.jobs, j)
		e.book.Resume(j.removal)
		hidden[r.ID] = struct{}{}
	}
	return hidden, nil
}

// newEpoch begins a new epoch, which makes positions in lost data invalid.
func (e *Engine) newEpoch(last datadir.Mark) error {
	e.epoch = max(e.epoch, last.Epoch) + 1
	b := e.db.NewBatch()
	_ = b.Set(layout.KeyEpoch, layout.AppendNumber(nil, layout.KeyEpoch, e.epoch), nil)
	return e.write(b, true)
}

// start begins the engine's goroutines; Close waits for them.
func (e *Engine) start() {
	e.compactions.Begin()
	e.compactions.KeepOffering()
	e.measureRoom(0)
	e.helpers.Add(3)
	go e.keepLoop()
	if e.copy == nil {
		go e.markLoop()
	} else { // what is synced is known only at open and close
		e.helpers.Done()
	}
	go e.removeLoop()
	go e.tidyLoop()
	go e.commitLoop()
}
