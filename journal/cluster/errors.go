package cluster

import (
	"errors"
	"fmt"

	"github.com/parley-hub/parley/journal"
)

// Errors for a log that contradicts a copy. Each fails the shard closed: nothing is
// applied or ordered until the log fits again. All are ErrDamaged.

// MissingError is the error when the log lacks a message that it should have.
type MissingError struct {
	Shard int
	Seq   uint64
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("shard %d: no replica gives message %d of the log, though there are later ones; see `nats stream report` for a damaged replica", e.Shard, e.Seq)
}

// ChainError is the error when a message does not follow the one before it.
type ChainError struct {
	Shard int
	Seq   uint64
}

func (e *ChainError) Error() string {
	return fmt.Sprintf("shard %d: message %d of the log does not follow what the copy has; the log was changed", e.Shard, e.Seq)
}

// TermError is the error when a message comes after a fence of another term.
type TermError struct {
	Shard      int
	Seq        uint64
	Term, Want uint64
}

func (e *TermError) Error() string {
	return fmt.Sprintf("shard %d: message %d of the log is of term %d, behind the fence of term %d", e.Shard, e.Seq, e.Term, e.Want)
}

// WentBackError is the error when the log ends before the place of the copy.
type WentBackError struct {
	Shard         int
	Last, Applied uint64
}

func (e *WentBackError) Error() string {
	return fmt.Sprintf("shard %d: the log ends at %d, the copy has it up to %d: the log went back; make it anew from the most advanced copy", e.Shard, e.Last, e.Applied)
}

// GoneError is the error when the log no longer exists.
type GoneError struct{ Shard int }

func (e *GoneError) Error() string {
	return fmt.Sprintf("shard %d: the log is gone; make it anew from the most advanced copy", e.Shard)
}

// ReplacedError is the error when the log is not the one that the copy was made from.
type ReplacedError struct{ Shard int }

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("shard %d: the log was made anew under the same name; the copy is of another one", e.Shard)
}

// EpochError is the error when the log and the copy are of different epochs.
type EpochError struct {
	Shard     int
	Log, Copy uint64
}

func (e *EpochError) Error() string {
	return fmt.Sprintf("shard %d: the log is of epoch %d, the copy of epoch %d; take the copy from another node", e.Shard, e.Log, e.Copy)
}

// BehindError is the error when the copy ends before the log begins.
type BehindError struct {
	Shard         int
	First, Offset uint64
}

func (e *BehindError) Error() string {
	return fmt.Sprintf("shard %d: the log begins at message %d, the copy ends at offset %d before it; take the copy from another node", e.Shard, e.First, e.Offset)
}

// GroupError is the error when a message follows the one before it but cannot be
// applied.
type GroupError struct {
	Shard int
	Seq   uint64
	Err   error
}

func (e *GroupError) Error() string {
	return fmt.Sprintf("shard %d: message %d of the log cannot be applied: %v", e.Shard, e.Seq, e.Err)
}

// Unwrap returns the cause.
func (e *GroupError) Unwrap() error { return e.Err }

func damaged(target error) bool { return errors.Is(target, journal.ErrDamaged) }

// Is makes it an ErrDamaged.
func (e *MissingError) Is(target error) bool { return damaged(target) }

// Is makes it an ErrDamaged.
func (e *ChainError) Is(target error) bool { return damaged(target) }

// Is makes it an ErrDamaged.
func (e *TermError) Is(target error) bool { return damaged(target) }

// Is makes it an ErrDamaged.
func (e *WentBackError) Is(target error) bool { return damaged(target) }

// Is makes it an ErrDamaged.
func (e *GoneError) Is(target error) bool { return damaged(target) }

// Is makes it an ErrDamaged.
func (e *ReplacedError) Is(target error) bool { return damaged(target) }

// Is makes it an ErrDamaged.
func (e *EpochError) Is(target error) bool { return damaged(target) }

// Is makes it an ErrDamaged.
func (e *BehindError) Is(target error) bool { return damaged(target) }

// Is makes it an ErrDamaged.
func (e *GroupError) Is(target error) bool { return damaged(target) }
