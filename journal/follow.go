package journal

import "context"

// Follower follows one log. It keeps a position and no queue: what it returns
// is read when it is asked for. It is used by one goroutine at a time, apart
// from Close.
type Follower interface {
	// Next waits until records after the position are durable and returns
	// them in order, at most a page. It returns *GapError when the position
	// does not exist, also when the log was dropped since; after that, and
	// after any error but the context's, it returns the same error again:
	// follow anew, from the position that the gap names or from the start.
	Next(ctx context.Context) (Page, error)
	// Position after which Next goes on.
	Position() Position
	// Close makes Next return ErrClosed. It may be called at any time.
	Close()
}

// ShardFollower follows a shard in commit order. What Follower says about its
// methods holds here too.
type ShardFollower interface {
	Next(ctx context.Context) ([]Commit, error)
	Position() ShardPosition
	Close()
}

// Commit is one durable batch, or a drop, in a shard.
type Commit struct {
	Position ShardPosition
	Writes   []Write
	// DroppedLog is set for the commit of Drop, DroppedPartition for that of
	// DropPartition.
	DroppedLog       *LogName
	DroppedPartition *PartitionName
	// Values are the keys of durable values that the batch wrote or deleted.
	Values []ValueKey
	// Hint is the batch's, for a follower at the tail; otherwise nil.
	Hint []byte
}

// Write is what a commit appended to one log.
type Write struct {
	Log         LogName // zero when the log was dropped since and its name is gone
	Incarnation uint64
	First, Last uint64 // sequences
	// Entries are the records. They are missing, and Dropped is set, when the
	// log was dropped since.
	Entries []Entry
	Dropped bool
}
