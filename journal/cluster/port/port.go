// Package port is what the cluster engine asks of the log that replicates it:
// storing bytes at an exact place, reading them, being told of new ones, and
// small words between nodes. It names no product; jetstream is the one behind it
// today.
package port

import (
	"context"
	"errors"
)

// Log is a replicated log for each shard, numbered from 1 without holes.
type Log interface {
	// Append stores data directly after sequence number after. It returns nil
	// only when the data is durable at after+1. Any error, a refusal included,
	// says nothing: the data may be there, or may be there later.
	Append(ctx context.Context, shard int, after uint64, data []byte) error
	// Read returns messages from a sequence on, in order, as many as are
	// convenient. None, or a later first one, means that whoever answered does
	// not have that message; another may.
	Read(ctx context.Context, shard int, from uint64) ([]Message, error)
	// Tail calls push with new messages until stop is called. It may skip some.
	// push must not block.
	Tail(shard int, push func(Message)) (stop func(), err error)
	// State tells where a shard's log is. It may be an old answer.
	State(ctx context.Context, shard int) (State, error)
	// MaxBytes is the largest message that Append takes now.
	MaxBytes() int

	// Beat says something small to all nodes, and Beats hears what they say,
	// until stop is called. Both may lose any of it.
	Beat(data []byte) error
	Beats(hear func([]byte)) (stop func(), err error)

	// Elsewhere says that nothing came of what was asked about a shard for a
	// while: the server may be cut off from the others. It does not wait.
	Elsewhere(shard int)
	Close()
}

// Message is a stored message.
type Message struct {
	Seq  uint64
	Data []byte
}

// State is where a shard's log is.
type State struct {
	ID          [16]byte // another log under the same name has another
	Epoch       uint64
	Shards      int    // of the whole cluster
	First, Last uint64 // sequences; Last is 0 when there is none
	NoQuorum    bool   // too few of its servers reach each other to store anything
}

// ErrRefused is returned when the log says that the last sequence is another than the one
// expected. It proves nothing: a leader without quorum says so of its own
// proposal.
var ErrRefused = errors.New("refused, another last sequence was expected")

// ErrTooLarge is returned when a message is larger than what the log takes now.
var ErrTooLarge = errors.New("the message is larger than what the log takes")

// ErrUnfit is returned when the settings of a log were changed so that it may lose,
// refuse or hide messages. The error says which and what is right.
var ErrUnfit = errors.New("the settings of the log do not fit")

// ErrNoLog is returned when there is no log for the shard.
var ErrNoLog = errors.New("there is no log for the shard")
