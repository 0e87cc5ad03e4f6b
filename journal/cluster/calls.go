package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
)

// The methods of journal.Engine call the copy of their shard.

// Place implements journal.Engine.
func (e *Engine) Place(ctx context.Context, shard int) (journal.Place, error) {
	c, err := e.at(shard)
	if err != nil {
		return journal.Place{}, err
	}
	return c.Place(ctx, shard)
}

// Confirm implements journal.Engine.
func (e *Engine) Confirm(ctx context.Context, shard int) error {
	c, err := e.at(shard)
	if err != nil {
		return err
	}
	return c.Confirm(ctx, shard)
}

// Append implements journal.Engine.
func (e *Engine) Append(ctx context.Context, b journal.Batch) (*journal.Ticket, error) {
	return e.of(b.Partition()).Append(ctx, b)
}

// PutLazy implements journal.Engine.
func (e *Engine) PutLazy(ctx context.Context, writes ...journal.ValueWrite) error {
	if len(writes) == 0 {
		return nil
	}
	return e.of(writes[0].Key.Partition).PutLazy(ctx, writes...)
}

// Head implements journal.Engine.
func (e *Engine) Head(ctx context.Context, log journal.LogName) (journal.Heads, error) {
	return e.of(log.Of()).Head(ctx, log)
}

// Read implements journal.Engine.
func (e *Engine) Read(ctx context.Context, log journal.LogName, opts journal.ReadOptions) (journal.Page, error) {
	return e.of(log.Of()).Read(ctx, log, opts)
}

// Logs implements journal.Engine.
func (e *Engine) Logs(ctx context.Context, p journal.PartitionName, opts journal.LogsOptions) (journal.LogsPage, error) {
	return e.of(p).Logs(ctx, p, opts)
}

// Value implements journal.Engine.
func (e *Engine) Value(ctx context.Context, key journal.ValueKey) (journal.ValueState, error) {
	return e.of(key.Partition).Value(ctx, key)
}

// LazyValue implements journal.Engine.
func (e *Engine) LazyValue(ctx context.Context, key journal.ValueKey) (journal.Value, error) {
	return e.of(key.Partition).LazyValue(ctx, key)
}

// Values implements journal.Engine.
func (e *Engine) Values(ctx context.Context, p journal.PartitionName, opts journal.ValuesOptions) (journal.ValuesPage, error) {
	return e.of(p).Values(ctx, p, opts)
}

// Scan implements journal.Engine.
func (e *Engine) Scan(ctx context.Context, shard int, opts journal.ScanOptions) (journal.ScanPage, error) {
	c, err := e.at(shard)
	if err != nil {
		return journal.ScanPage{}, err
	}
	return c.Scan(ctx, shard, opts)
}

// Claim implements journal.Engine.
func (e *Engine) Claim(ctx context.Context, shard int, name string) (journal.ClaimState, error) {
	c, err := e.at(shard)
	if err != nil {
		return journal.ClaimState{}, err
	}
	return c.Claim(ctx, shard, name)
}

// Follow implements journal.Engine.
func (e *Engine) Follow(ctx context.Context, log journal.LogName, after journal.Position) (journal.Follower, error) {
	return e.of(log.Of()).Follow(ctx, log, after)
}

// FollowShard implements journal.Engine.
func (e *Engine) FollowShard(ctx context.Context, shard int, after journal.ShardPosition) (journal.ShardFollower, error) {
	c, err := e.at(shard)
	if err != nil {
		return nil, err
	}
	return c.FollowShard(ctx, shard, after)
}

// PutSnapshot implements journal.Engine.
func (e *Engine) PutSnapshot(ctx context.Context, key journal.ValueKey, s journal.Snapshot) error {
	return e.of(key.Partition).PutSnapshot(ctx, key, s)
}

// Snapshot implements journal.Engine.
func (e *Engine) Snapshot(ctx context.Context, key journal.ValueKey, version uint64) (*journal.Snapshot, error) {
	return e.of(key.Partition).Snapshot(ctx, key, version)
}

// DropSnapshot implements journal.Engine.
func (e *Engine) DropSnapshot(ctx context.Context, key journal.ValueKey) error {
	return e.of(key.Partition).DropSnapshot(ctx, key)
}

// Drop implements journal.Engine.
func (e *Engine) Drop(ctx context.Context, log journal.LogName) (*journal.Ticket, error) {
	return e.of(log.Of()).Drop(ctx, log)
}

// DropPartition implements journal.Engine.
func (e *Engine) DropPartition(ctx context.Context, p journal.PartitionName, keep ...string) (*journal.Ticket, error) {
	return e.of(p).DropPartition(ctx, p, keep...)
}

// RebuildIndex implements journal.Engine. It is local: each node has its own
// index.
func (e *Engine) RebuildIndex(ctx context.Context) error {
	for _, s := range e.shards {
		if err := s.store().RebuildIndex(ctx); err != nil {
			return fmt.Errorf("shard %d: %w", s.n, err)
		}
	}
	return nil
}

// Checkpoint implements journal.Engine: a checkpoint of each copy at one moment, in
// folders that Folder names.
func (e *Engine) Checkpoint(ctx context.Context, dir string) (journal.StorePosition, error) {
	at, err := e.checkpoint(ctx, dir)
	if err != nil {
		return nil, err
	}
	for _, s := range e.shards {
		if err := s.store().SumCheckpoint(Folder(e.opts.Disk, dir, s.n)); err != nil {
			return nil, errors.Join(fmt.Errorf("shard %d: %w", s.n, err), e.opts.Disk.FS.RemoveAll(dir))
		}
	}
	return at, nil
}

// checkpoint makes checkpoints without checksums.
func (e *Engine) checkpoint(ctx context.Context, dir string) (journal.StorePosition, error) {
	fs := e.opts.Disk.FS
	if _, err := fs.Stat(dir); err == nil {
		return nil, fmt.Errorf("checkpoint: %s exists already", dir)
	}
	if err := fs.MkdirAll(fs.PathDir(Folder(e.opts.Disk, dir, 0)), 0o750); err != nil {
		return nil, err
	}
	var copies []*disk.Copy
	var dirs []string
	for _, s := range e.shards {
		copies, dirs = append(copies, s.store()), append(dirs, Folder(e.opts.Disk, dir, s.n))
	}
	at, err := disk.Checkpoints(ctx, copies, dirs)
	if err != nil {
		return nil, errors.Join(err, fs.RemoveAll(dir))
	}
	return at, nil
}
