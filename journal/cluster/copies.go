package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/repair"
)

// A copy that the log cannot complete, because the copy is new, wiped, behind a purge
// or of an earlier epoch, is replaced by the copy of another node. That copy includes
// its place in the log, so the rest of the log is then read as usual.

// longRead is the number of messages up to which a new copy reads the log instead of
// taking the copy of another node.
const longRead = 4096

// errNew is returned when an empty copy would have to read more than longRead messages.
var errNew = errors.New("the copy is new, and the log is long")

// open opens the folder of the shard's copy.
func (s *shard) open() error {
	c, err := disk.OpenCopy(s.engine.folder(s.n), s.opts.Disk, disk.CopyOptions{
		Shard: s.n, Shards: s.opts.Shards, GroupBytes: s.opts.GroupBytes, Ship: s.ship,
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.Join(journal.ErrClosed, c.Close())
	}
	s.copy.Store(c)
	s.taking = false
	s.engine.running.Go(func() {
		select {
		case <-c.Failed():
			s.engine.broken()
		case <-c.Ended():
		}
	})
	return nil
}

// store returns the copy. Calls of the copy return ErrClosed when it is replaced.
func (s *shard) store() *disk.Copy { return s.copy.Load() }

// close closes the copy for good.
func (s *shard) close() error {
	s.mu.Lock()
	s.closed = true
	close(s.ending)
	s.mu.Unlock()
	if c := s.store(); c != nil {
		return c.Close()
	}
	return nil
}

// replacing reports whether the copy is closed because it is being replaced.
func (s *shard) replacing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taking && !s.closed
}

// needsCopy reports whether the copy of another node resolves an error.
func needsCopy(err error) bool {
	var behind *BehindError
	var epoch *EpochError
	return errors.Is(err, errNew) || errors.As(err, &behind) || errors.As(err, &epoch) && epoch.Copy < epoch.Log
}

// takeCopy replaces the copy by that of the first live node that has a better one.
func (s *shard) takeCopy(ctx context.Context) error {
	errs := []error{fmt.Errorf("shard %d: no live node has a copy to take", s.n)}
	for _, from := range s.givers(ctx) {
		err := s.takeFrom(ctx, from)
		if err == nil {
			s.opts.Logger.Info("a copy was taken from another node", "shard", s.n, "node", from.Name)
			return nil
		}
		errs = append(errs, fmt.Errorf("taking the copy of node %s: %w", from.Name, err))
	}
	return errors.Join(errs...)
}

// givers returns the nodes that may have a better copy. It waits up to Suspect for
// their beats, because a node that has just started has heard none.
func (s *shard) givers(ctx context.Context) (found []Node) {
	for waited := time.Duration(0); ; waited += s.opts.Beat {
		for _, n := range s.engine.Nodes()[1:] {
			if n.Ready {
				found = append(found, n)
			}
		}
		if len(found) > 0 || waited > s.opts.Suspect {
			return found
		}
		select {
		case <-time.After(s.opts.Beat):
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *shard) takeFrom(ctx context.Context, from Node) error {
	state, err := s.log.State(ctx, s.n)
	if err != nil {
		return err
	}
	r, err := s.opts.Fetch(ctx, from, s.n)
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // its checksums tell whether it was whole
	var own disk.Place
	if err := s.store().Exclusively(ctx, func() error { own = s.store().At(); return nil }); err != nil {
		return err
	}
	taken, err := repair.TakeCopy(r, s.engine.folder(s.n), s.opts.Disk)
	if err != nil {
		return err
	}
	switch at := taken.Place; {
	case at.Log != state.ID || at.Epoch != state.Epoch:
		err = &ReplacedError{Shard: s.n}
	case at.Seq+1 < state.First, at.Epoch == own.Epoch && at.Seq <= own.Seq:
		err = &BehindError{Shard: s.n, First: state.First, Offset: taken.Offset}
	}
	if err != nil {
		return errors.Join(err, taken.Discard())
	}
	s.mu.Lock()
	s.taking = true
	s.mu.Unlock()
	// A copy of an earlier epoch may have data that the new one lacks, so it is kept.
	keep := own.Epoch != state.Epoch && s.store().Offset() > 0
	if err := s.store().Close(); err != nil {
		s.opts.Logger.Warn("the copy that is replaced did not close well", "shard", s.n, "error", err)
	}
	if err := taken.Install(keep); err != nil {
		return err
	}
	return s.open()
}

// WriteCopy writes this node's copy of a shard, with its place in the log, for
// another node's Fetch. Only one copy of a shard is written at a time.
func (e *Engine) WriteCopy(ctx context.Context, shard int, w io.Writer) error {
	c, err := e.at(shard)
	if err != nil {
		return err
	}
	s := e.shards[shard]
	if err := s.troubled(); err != nil {
		return fmt.Errorf("the copy is not given away: %w", err)
	}
	select {
	case s.giving <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.giving }()
	_, err = c.Backup(ctx, w, nil)
	return err
}

// NewEpoch begins one new epoch, higher than above, in all copies of a node's folder,
// so that new logs can be made from them. The copies must not be open. NewEpoch
// returns an error if the folder has no copies.
func NewEpoch(opts disk.Options, dir string, shards int, above uint64) (epoch uint64, err error) {
	fs := opts.WithDefaults().FS
	epoch = above
	for n := range shards {
		folder := Folder(opts, dir, n)
		if _, err := fs.Stat(folder); err != nil {
			return 0, fmt.Errorf("the copy of shard %d of %d: %w", n, shards, err)
		}
		at, err := disk.CopyEpoch(folder, opts)
		if err != nil {
			return 0, err
		}
		epoch = max(epoch, at)
	}
	epoch++
	for n := range shards {
		if err := disk.BeginCopy(Folder(opts, dir, n), opts, epoch); err != nil {
			return 0, err
		}
	}
	return epoch, nil
}
