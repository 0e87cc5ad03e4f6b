package disk

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/store"
)

// Copy is a store that is the copy of a log kept elsewhere. A group is durable
// when that log has it, and is applied here without a sync: what a crash takes
// is read from the log again. While this process leads, the store's committer
// ships groups; otherwise groups that others shipped are applied. Everything else
// is the engine's.
type Copy struct{ *Engine }

// CopyOptions say what a store is a copy of.
type CopyOptions struct {
	Shard, Shards int
	GroupBytes    int64 // a batch that makes a group larger waits for the next one
	// Ship makes a group durable in the log and returns its place there. When the
	// outcome is not Durable, the group is not applied: it ends so, and this
	// process no longer leads. Ship runs on the committer.
	Ship func(g Group) (Place, journal.Outcome, error)
}

// Group is what one commit writes.
type Group struct {
	First, Count uint64   // offsets; no batch is in it when Count is 0
	Hints        [][]byte // of the batches
	Batch        []byte   // Pebble's; valid until Ship returns

	found *layout.GroupContents // of a group that was checked; nil: it was not
}

// Empty reports whether the group writes nothing.
func (g *Group) Empty() bool { return len(g.Batch) <= pebbleHeader }

// pebbleHeader is the length of a batch of Pebble's that writes nothing.
const pebbleHeader = 12

// Place is where in its log a copy is. It is stored with the group that it is
// the place of.
type Place = layout.Place

type copying struct {
	shard, shards int
	groupBytes    int64
	ship          func(Group) (Place, journal.Outcome, error)
	at            Place // used on the committer
	run           run   // used on the committer

	behind *behind     // durable and not applied yet; used on the committer
	wanted atomic.Bool // somebody waits until it is applied
}

// OpenCopy opens a folder as a copy, and makes it if there is none. It follows
// until TakeOver is called.
func OpenCopy(dir string, opts Options, c CopyOptions) (*Copy, error) {
	e, err := open(dir, opts, &copying{shard: c.Shard, shards: c.Shards, groupBytes: c.GroupBytes, ship: c.Ship})
	if err != nil {
		return nil, err
	}
	at, err := store.ReadCopyPlace(e.view.snap)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("data folder %s: %w", dir, err), e.Close())
	}
	if at.Epoch != e.epoch {
		at = Place{Epoch: e.epoch} // restored: it is a copy of no log yet
	}
	e.copy.at = at
	return &Copy{e}, nil
}

// Exclusively runs fn on the committer while nothing is in flight. At, Apply,
// Gather, Flush, Move, TakeOver and Yield are called from such an fn.
func (c *Copy) Exclusively(ctx context.Context, fn func() error) error {
	_, err := c.betweenGroups(ctx, false, fn, func() {})
	return err
}

// At is where the copy is.
func (c *Copy) At() Place { return c.copy.at }

// Offset is that of the last batch of the copy.
func (c *Copy) Offset() uint64 { return c.durable.Load() }

// writeAt applies a batch together with its place.
func (e *Engine) writeAt(batch *pebble.Batch, at Place) error {
	_ = batch.Set(layout.KeyPlace, layout.AppendPlace(nil, at), nil)
	return e.write(batch, false)
}

// Move stores a place that nothing was written at.
func (c *Copy) Move(at Place) error {
	if err := c.Flush(); err != nil { // what was gathered is before it
		return err
	}
	b := c.db.NewBatch()
	defer b.Close() //nolint:errcheck // never fails
	if at.Epoch != c.epoch {
		return fmt.Errorf("the copy is of epoch %d, its log of epoch %d: %w", c.epoch, at.Epoch, journal.ErrInvalid)
	}
	c.copy.at = at
	return c.failing(c.writeAt(b, at))
}

// failing ends the engine when its store does not take a write.
func (c *Copy) failing(err error) error {
	if err != nil {
		c.fail(err)
	}
	return err
}

// TakeOver begins to order: what is applied is all there is. The term is at least
// the one given.
func (c *Copy) TakeOver(term uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ended(); err != nil {
		return err
	}
	if _, err := c.renew(c.view, max(term, c.book.Place().Term+1)); err != nil {
		return err
	}
	c.notMine = nil
	c.lookAgain()
	signal(c.dropped)
	return nil
}

// Yield stops ordering, to a node if that is known. What is ordered and not
// durable is aborted. Lazy values that were not shipped are lost to a node, as in
// a crash.
func (c *Copy) Yield(node string) {
	notMine := &journal.NotMineError{Shard: c.shard, Node: node}
	c.mu.Lock()
	led := c.notMine == nil
	c.notMine = notMine
	if node != "" {
		clear(c.lazy)
		c.dirty = 0
	}
	c.mu.Unlock()
	if led {
		c.forget(nil, journal.Aborted, notMine)
	}
}

// follow refuses what arrives from now on.
func (e *Engine) follow(cause error) {
	var notMine *journal.NotMineError
	if !errors.As(cause, &notMine) {
		notMine = &journal.NotMineError{Shard: e.shard}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notMine = notMine
}

// Confirm implements journal.Engine: a group of a copy that became durable shows
// that this process leads.
func (e *Engine) Confirm(ctx context.Context, shard int) error {
	if err := e.checkShard(ctx, shard); err != nil {
		return err
	}
	e.mu.Lock()
	if err := e.refusedUpkeep(); err != nil || e.copy == nil {
		e.mu.Unlock()
		return err
	}
	g := e.group
	g.confirm = true
	e.mu.Unlock()
	signal(e.wake)
	select {
	case <-g.fate.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if g.fate.Outcome() == journal.Durable {
		return nil
	}
	if err := e.refusedDrop(); err != nil {
		return err
	}
	return &journal.NotMineError{Shard: shard}
}

// Ended is closed when the copy is closed.
func (c *Copy) Ended() <-chan struct{} { return c.stop }

// CopyEpoch is the epoch of a copy that nobody has open.
func CopyEpoch(dir string, opts Options) (epoch uint64, err error) {
	c, err := OpenCopy(dir, opts, CopyOptions{})
	if err != nil {
		return 0, err
	}
	return c.epoch, c.Close()
}

// BeginCopy makes a copy that nobody has open one of no log, in a later epoch.
func BeginCopy(dir string, opts Options, epoch uint64) error {
	c, err := OpenCopy(dir, opts, CopyOptions{})
	if err != nil {
		return err
	}
	err = c.Exclusively(context.Background(), func() error {
		if epoch <= c.epoch {
			return fmt.Errorf("data folder %s: its epoch is %d, epoch %d does not follow: %w", dir, c.epoch, epoch, journal.ErrInvalid)
		}
		b := c.db.NewBatch()
		defer b.Close() //nolint:errcheck // never fails
		_ = b.Set(layout.KeyEpoch, layout.AppendNumber(nil, layout.KeyEpoch, epoch), nil)
		if err := c.write(b, true); err != nil {
			return c.failing(err)
		}
		c.epoch = epoch // for MARK
		return nil
	})
	return errors.Join(err, c.Close())
}
