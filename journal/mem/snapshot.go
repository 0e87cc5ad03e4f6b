package mem

import (
	"context"
	"maps"
	"slices"

	"github.com/parley-hub/parley/journal"
)

// PutSnapshot implements journal.Engine.
func (e *Engine) PutSnapshot(ctx context.Context, key journal.ValueKey, s journal.Snapshot) error {
	if err := s.Validate(key); err != nil {
		return err
	}
	if err := e.enterWrite(ctx, 0); err != nil {
		return err
	}
	defer e.store.mu.Unlock()
	e.store.snapshots[key] = copySnapshot(s)
	return nil
}

func copySnapshot(s journal.Snapshot) journal.Snapshot {
	return journal.Snapshot{Version: s.Version, Logs: slices.Clone(s.Logs), Data: copyBytes(s.Data)}
}

// Snapshot implements journal.Engine.
func (e *Engine) Snapshot(ctx context.Context, key journal.ValueKey, version uint64) (*journal.Snapshot, error) {
	if err := key.Partition.Validate(); err != nil {
		return nil, err
	}
	if err := e.enter(ctx, 0); err != nil {
		return nil, err
	}
	s, ok := e.store.snapshots[key]
	e.store.mu.Unlock()
	if !ok || s.Version != version {
		return nil, nil
	}
	if fits, err := s.Fits(ctx, e.Head); err != nil || !fits {
		return nil, err
	}
	return new(copySnapshot(s)), nil
}

// DropSnapshot implements journal.Engine.
func (e *Engine) DropSnapshot(ctx context.Context, key journal.ValueKey) error {
	if err := key.Partition.Validate(); err != nil {
		return err
	}
	if err := e.enter(ctx, 0); err != nil {
		return err
	}
	defer e.store.mu.Unlock()
	delete(e.store.snapshots, key)
	return nil
}

// dropSnapshots removes the snapshots of a partition; the lock is held.
func (s *Store) dropSnapshots(p journal.PartitionName) {
	maps.DeleteFunc(s.snapshots, func(key journal.ValueKey, _ journal.Snapshot) bool { return key.Partition == p })
}
