package cluster

import (
	"context"

	"github.com/parley-hub/parley/journal/cluster/port"
)

// Abandon cancels all publishing, as the end of the process would.
func (e *Engine) Abandon() { e.abandon() }

// Reached returns how far a shard's log was applied.
func (e *Engine) Reached(shard int) uint64 { return e.shards[shard].seen.Load() }

// Trouble returns why a shard's log is not followed.
func (e *Engine) Trouble(shard int) error { return e.shards[shard].troubled() }

// Bounds.
const (
	LongRead  = longRead
	TailQueue = tailQueue
)

// Give applies messages of a shard's log, as if they had been read from it.
func (e *Engine) Give(ctx context.Context, shard int, messages ...port.Message) error {
	return e.shards[shard].give(ctx, e.shards[shard].prepare(messages))
}
