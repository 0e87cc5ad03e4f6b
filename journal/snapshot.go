package journal

import (
	"context"
	"fmt"
)

// Bounds of a snapshot.
const (
	MaxSnapshot     = 64 << 20 // bytes of its data
	MaxSnapshotLogs = 16
)

// Snapshot is what a caller has computed from the records of some logs, kept so
// that it need not be computed again. It is disposable: it is local to an
// engine, in no backup and in no copy on another machine, and may be gone at any
// time. Nothing may be in it that the logs do not have.
type Snapshot struct {
	Version uint64        // of the computation; the caller's
	Logs    []LogPosition // what it was computed from, all of its key's partition
	Data    []byte
}

// LogPosition is a place in a named log. The zero position is before the first
// record, whether the log exists or not.
type LogPosition struct {
	Log LogName
	At  Position
}

// Validate refuses a snapshot that no engine takes.
func (s *Snapshot) Validate(key ValueKey) error {
	if err := key.Partition.Validate(); err != nil {
		return err
	}
	if err := validateKey("snapshot name", len(key.Name)); err != nil {
		return err
	}
	if len(s.Data) > MaxSnapshot {
		return &BoundsError{What: "snapshot: bytes", Got: len(s.Data), Max: MaxSnapshot}
	}
	if len(s.Logs) == 0 || len(s.Logs) > MaxSnapshotLogs {
		return &BoundsError{What: "snapshot: logs", Got: len(s.Logs), Min: 1, Max: MaxSnapshotLogs}
	}
	for _, l := range s.Logs {
		if err := l.Log.Validate(); err != nil {
			return err
		}
		if l.Log.Of() != key.Partition {
			return fmt.Errorf("snapshot of partition %v names a log of %v: %w", key.Partition, l.Log.Of(), ErrInvalid)
		}
	}
	return nil
}

// Fits reports whether every position of the snapshot exists: its log is the
// same incarnation in the same epoch and has at least that many durable records.
// It is the engine's side of a snapshot.
func (s *Snapshot) Fits(ctx context.Context, head func(context.Context, LogName) (Heads, error)) (bool, error) {
	for _, l := range s.Logs {
		if l.At.IsZero() {
			continue
		}
		heads, err := head(ctx, l.Log)
		if err != nil {
			return false, err
		}
		at := heads.Durable
		if at.Epoch != l.At.Epoch || at.Incarnation != l.At.Incarnation || at.Seq < l.At.Seq {
			return false, nil
		}
	}
	return true, nil
}
