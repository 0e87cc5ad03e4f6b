// Package port defines what the cluster engine needs of a replicated log: storing
// bytes at an exact place, reading them, receiving new ones, and small messages
// between nodes. It depends on no product; package jetstream implements it.
package port

import (
	"context"
	"errors"
)

// Log is a replicated log for each shard, numbered from 1 without holes.
type Log interface {
	// Append stores data directly after sequence number after. It returns nil
	// only if the data is durable at after+1. Any error, including a refusal,
	// proves nothing: the data may be stored, or may be stored later.
	Append(ctx context.Context, shard int, after uint64, data []byte) error
	// Read returns messages from a sequence on, in order; it chooses how many.
	// No message, or a later first one, means that the server that answered
	// does not have the message; another server may have it.
	Read(ctx context.Context, shard int, from uint64) ([]Message, error)
	// Tail calls push with new messages until stop is called. It may skip some.
	// push must not block.
	Tail(shard int, push func(Message)) (stop func(), err error)
	// State returns the state of a shard's log, which may be out of date.
	State(ctx context.Context, shard int) (State, error)
	// MaxBytes returns the size of the largest message that Append takes now.
	MaxBytes() int

	// Beat sends a small message to all nodes, and Beats calls hear with such
	// messages until stop is called. Messages may be lost.
	Beat(data []byte) error
	Beats(hear func([]byte)) (stop func(), err error)

	// Elsewhere reports that requests about a shard have failed for a while:
	// the server may be cut off from the others. It does not block.
	Elsewhere(shard int)
	Close()
}

// Message is a stored message.
type Message struct {
	Seq  uint64
	Data []byte
}

// State is the state of a shard's log.
type State struct {
	ID          [16]byte // another log with the same name has another ID
	Epoch       uint64
	Shards      int    // of the whole cluster
	First, Last uint64 // sequences; Last is 0 if there is no message
	NoQuorum    bool   // too few of its servers reach each other to store anything
}

// ErrRefused is returned when the log reports another last sequence than the expected
// one. It proves nothing: a leader without quorum also returns it because of its own
// proposal.
var ErrRefused = errors.New("refused, another last sequence was expected")

// ErrTooLarge is returned when a message is larger than the log accepts now.
var ErrTooLarge = errors.New("the message is larger than what the log takes")

// ErrUnfit is returned when the settings of a log were changed so that it may lose,
// refuse or hide messages. The error names the setting and the right value.
var ErrUnfit = errors.New("the settings of the log do not fit")

// ErrNoLog is returned when there is no log for the shard.
var ErrNoLog = errors.New("there is no log for the shard")
