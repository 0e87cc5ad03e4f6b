package journal

import (
	"context"
	"time"
)

// Engine is one store of logs. See the package comment for what every engine
// promises; journaltest.Exercise is the suite that holds it to that.
type Engine interface {
	// Shards is the fixed number of shards, at least 1.
	Shards() int
	// Shard is the shard of a partition, from 0 to Shards()-1, as ShardOf
	// tells. It never changes for a given store.
	Shard(p PartitionName) int
	// Place tells where a shard is now: its epoch, its term, and the offsets
	// that are ordered and durable.
	Place(ctx context.Context, shard int) (Place, error)

	// Lead tells whether this process orders a shard, and otherwise who does if
	// that is known. The channel is closed when the answer changes; it is nil
	// when it never does. Writes to a shard that is not mine are refused with
	// *NotMineError; reads show what has reached this node.
	Lead(shard int) (mine bool, node string, changed <-chan struct{})
	// Confirm returns when it is certain that this process ordered the shard at
	// some moment after the call began. An answer that stores nothing, computed
	// from what is ordered, is given after that.
	Confirm(ctx context.Context, shard int) error

	// Append orders a batch and returns its ticket, without waiting for it to
	// be durable. It waits, until ctx ends, while too many bytes are ordered
	// and not yet durable. A batch that breaks a bound is refused with
	// *BoundsError, one that does not fit what is ordered with
	// *ConflictError; neither leaves a trace. The checks are made as one step
	// against everything ordered before, and in this order: term, expected
	// sequences, claims, expected values.
	Append(ctx context.Context, b Batch) (*Ticket, error)

	// PutLazy writes lazy values: visible to Value reads at once, perhaps lost
	// in a crash, never torn. All writes are of one partition. Expectations
	// compare with what is visible. Lazy and durable values never meet: the
	// same key names two different values.
	PutLazy(ctx context.Context, writes ...ValueWrite) error

	// Head tells where a log ends. A log that does not exist has heads with
	// nothing but the epoch.
	Head(ctx context.Context, log LogName) (Heads, error)
	// Read returns one page of a log's durable records. A log that does not
	// exist gives an empty page.
	Read(ctx context.Context, log LogName, opts ReadOptions) (Page, error)
	// Logs lists the logs of a partition, in the order of their encoded names.
	Logs(ctx context.Context, p PartitionName, opts LogsOptions) (LogsPage, error)

	// Value reads a value. One that is absent has version 0.
	Value(ctx context.Context, key ValueKey) (ValueState, error)
	// LazyValue reads a lazy value as PutLazy last left it.
	LazyValue(ctx context.Context, key ValueKey) (Value, error)
	// Values lists a partition's durable or lazy values in the order of their
	// names.
	Values(ctx context.Context, p PartitionName, opts ValuesOptions) (ValuesPage, error)

	// Scan returns one page of a shard's index, in the order of the keys'
	// bytes. Entries of different logs under one key are all returned.
	Scan(ctx context.Context, shard int, opts ScanOptions) (ScanPage, error)
	// Claim tells who holds a claim in a shard. An expired claim is free.
	Claim(ctx context.Context, shard int, name string) (ClaimState, error)

	// Follow follows one log after a position; the zero position is before
	// its first record, whether the log exists yet or not. A position that
	// does not exist is answered by the follower's first Next, with *GapError;
	// one that is ordered exists when its ticket has ended durable.
	Follow(ctx context.Context, log LogName, after Position) (Follower, error)
	// FollowShard follows a shard in commit order after a position; the zero
	// position is before its first batch.
	FollowShard(ctx context.Context, shard int, after ShardPosition) (ShardFollower, error)

	// PutSnapshot keeps a snapshot under a key until it is replaced, dropped,
	// or thrown away for want of room. It is not ordered, and no batch waits
	// for it. A snapshot must not be put of what is not durable.
	PutSnapshot(ctx context.Context, key ValueKey, s Snapshot) error
	// Snapshot returns the snapshot that was put last, nil when there is none
	// of that version or the logs no longer have the records that it was
	// computed from.
	Snapshot(ctx context.Context, key ValueKey, version uint64) (*Snapshot, error)
	// DropSnapshot removes a snapshot, if there is one.
	DropSnapshot(ctx context.Context, key ValueKey) error

	// Drop removes a log with its index entries and claims. It is ordered like
	// a batch: from that moment on appends create the log anew, with a new
	// incarnation; when the ticket is durable no reader sees the log any more.
	// Removal then runs in bounded batches, and is finished by the next open
	// if it was interrupted. Dropping a log that does not exist does nothing
	// and returns a durable ticket.
	Drop(ctx context.Context, log LogName) (*Ticket, error)
	// DropPartition does the same with every log of a partition, and removes
	// its values and snapshots; logs of the families in keep stay as they are.
	DropPartition(ctx context.Context, p PartitionName, keep ...string) (*Ticket, error)

	// RebuildIndex throws the index and the claims of every shard away and
	// makes them again from the records. Appends wait meanwhile; reads see the
	// old set until the new one is complete. Engines do the same when they
	// open a store whose index is not marked complete.
	RebuildIndex(ctx context.Context) error

	// Checkpoint writes a copy of the store as it was at one moment to dir,
	// which must not exist, while the engine keeps working. It returns the
	// last position of each shard in the copy.
	Checkpoint(ctx context.Context, dir string) (StorePosition, error)

	// Health tells whether the engine admits appends, and if not, why.
	Health() Health
	// Failed is closed when the engine has failed for good: nothing more is
	// admitted in this process, and the process should end.
	Failed() <-chan struct{}
	// Stats are counters since opening.
	Stats() Stats

	// Close refuses new calls, makes what is ordered durable, ends every
	// ticket, follower and waiting call, and returns when no goroutine of the
	// engine is left. Closing again returns the first result.
	Close() error
}

// Place is where a shard is.
type Place struct {
	Epoch   uint64
	Term    uint64 // goes up each time ordered work was forgotten; means nothing in another process
	Ordered uint64 // offset of the last ordered batch
	Durable uint64 // offset of the last durable batch
}

// Heads are the two ends of a log: what readers see, and what expectations
// compare with.
type Heads struct {
	Durable Head
	Ordered Head
	Pending *Ticket // of the batch that made Ordered differ; nil when it does not
}

// Head is the end of a log.
type Head struct {
	Epoch       uint64
	Incarnation uint64 // offset at which the log was created; 0: there is no such log
	Seq         uint64 // of its last record
	Offset      uint64 // of the batch that wrote it
}

// Position of the head's record.
func (h Head) Position() Position {
	return Position{Epoch: h.Epoch, Incarnation: h.Incarnation, Seq: h.Seq}
}

// Exists reports whether there is such a log.
func (h Head) Exists() bool { return h.Incarnation != 0 }

// Claimed is a claim that is held.
type Claimed struct {
	Name        string
	Log         LogName // whose record took it
	Incarnation uint64
	Seq         uint64    // of that record
	Offset      uint64    // of that record's batch
	Expires     time.Time // zero: never
}

// ClaimState is who holds a claim; nil means that it is free.
type ClaimState struct {
	Durable *Claimed
	Ordered *Claimed
	Pending *Ticket // of the batch that made Ordered differ; nil when it does not
}
