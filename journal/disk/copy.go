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
// when that log has it, and is applied here without a sync: what a crash loses
// is read from the log again. While this process leads, the store's committer
// ships groups; otherwise the copy applies groups that other processes shipped.
// In everything else it is an Engine.
type Copy struct{ *Engine }

// CopyOptions describe the log that a store is a copy of.
type CopyOptions struct {
	Shard, Shards int
	GroupBytes    int64 // a batch that makes a group larger waits for the next one
	// Ship makes a group durable in the log and returns its place there. If the
	// outcome is not Durable, the group is not applied, its tickets end with that
	// outcome, and this process no longer leads. Ship runs on the committer.
	Ship func(g Group) (Place, journal.Outcome, error)
}

// Group is what one commit writes.
type Group struct {
	First, Count uint64   // offsets; the group has no batch when Count is 0
	Hints        [][]byte // of the batches
	Batch        []byte   // a Pebble batch; valid until Ship returns

	found *layout.GroupContents // set by Check; nil: not checked
}

// Empty reports whether the group writes nothing.
func (g *Group) Empty() bool { return len(g.Batch) <= pebbleHeader }

// pebbleHeader is the length of a Pebble batch that writes nothing.
const pebbleHeader = 12

// Place is the position of a copy in its log. It is stored together with the group
// at that position.
type Place = layout.Place

type copying struct {
	shard, shards int
	groupBytes    int64
	ship          func(Group) (Place, journal.Outcome, error)
	at            Place // used on the committer
	run           run   // used on the committer

	behind *behind     // durable and not applied yet; used on the committer
	wanted atomic.Bool // a reader waits until behind is applied
}

// OpenCopy opens a folder as a copy, and creates it if it does not exist. The copy
// follows until TakeOver is called.
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
		at = Place{Epoch: e.epoch} // restored: not yet a copy of any log
	}
	e.copy.at = at
	return &Copy{e}, nil
}

// Exclusively runs fn on the committer while nothing is in flight. At, Apply,
// Gather, Flush, Move, TakeOver and Yield must be called from such a function.
func (c *Copy) Exclusively(ctx context.Context, fn func() error) error {
	_, err := c.betweenGroups(ctx, false, fn, func() {})
	return err
}

// At returns the position of the copy in its log.
func (c *Copy) At() Place { return c.copy.at }

// Offset returns the offset of the last batch of the copy.
func (c *Copy) Offset() uint64 { return c.durable.Load() }

// writeAt applies a batch together with its place.
func (e *Engine) writeAt(batch *pebble.Batch, at Place) error {
	_ = batch.Set(layout.KeyPlace, layout.AppendPlace(nil, at), nil)
	return e.write(batch, false)
}

// Move stores a place at which there is no group to write.
func (c *Copy) Move(at Place) error {
	if err := c.Flush(); err != nil { // the gathered groups come before at
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

// failing fails the engine if err, the result of a write, is not nil.
func (c *Copy) failing(err error) error {
	if err != nil {
		c.fail(err)
	}
	return err
}

// TakeOver begins to order; every group of the log must be applied. The new term is
// at least the given one.
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
	c.wakeAppends()
	signal(c.dropped)
	return nil
}

// Yield stops ordering; node is the new leader, or empty if it is not known. It
// aborts what is ordered and not durable. If node is known, lazy values that were
// not shipped are lost, as in a crash.
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

// follow refuses writes from now on.
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

// Ended returns a channel that is closed when the copy is closed.
func (c *Copy) Ended() <-chan struct{} { return c.stop }

// CopyEpoch returns the epoch of a copy that is not open.
func CopyEpoch(dir string, opts Options) (epoch uint64, err error) {
	c, err := OpenCopy(dir, opts, CopyOptions{})
	if err != nil {
		return 0, err
	}
	return c.epoch, c.Close()
}

// BeginCopy detaches a copy that is not open from its log and begins a later epoch.
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
