// Package ledger writes for the other packages of a hub: batches that are durable
// when a call returns, and the audit records that are stored with them. It depends
// on the journal and its keys, and not on the hub.
package ledger

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Ledger writes to one tenant's part of a journal.
type Ledger struct {
	Journal     journal.Engine
	Tenant      schema.Tenant
	Now         func() time.Time
	Minter      *envelope.Minter
	Log         *slog.Logger
	RecordBytes int          // the maximum of a record that lists show
	Isolate     func(func()) // calls an audit sink and recovers its panic

	audit audit
}

// Commit appends a batch and waits until it is durable. Nothing may have been
// computed from the batch before.
func (l *Ledger) Commit(ctx context.Context, batch journal.Batch) error {
	ticket, err := l.Journal.Append(ctx, batch)
	if err != nil {
		return Unavailable(err)
	}
	if err := ticket.Wait(ctx); err != nil {
		return Unavailable(err)
	}
	l.StoredIn(&batch)
	return nil
}

// Drop removes a log, and waits until that is durable.
func (l *Ledger) Drop(ctx context.Context, log journal.LogName) error {
	ticket, err := l.Journal.Drop(ctx, log)
	if err != nil {
		return Unavailable(err)
	}
	return Unavailable(ticket.Wait(ctx))
}

// BoundRecord returns an error if a record would make lists too long to send.
func (l *Ledger) BoundRecord(what string, size int) error {
	if size > l.RecordBytes {
		return fault.New(fault.TooLarge, "%s: %d bytes; at most %d (limits.record)", what, size, l.RecordBytes)
	}
	return nil
}

// Unavailable gives the journal's errors a code of the catalogue.
func Unavailable(err error) error {
	switch {
	case err == nil || fault.CodeOf(err) != fault.Internal:
		return err // nothing to translate, or translated already
	case errors.Is(err, journal.ErrInvalid):
		return fault.Wrap(fault.TooLarge, err, "not stored: %v", err)
	case errors.Is(err, journal.ErrDamaged):
		return fault.Wrap(fault.Internal, err, "stored data cannot be read: %v", err)
	case journal.Retryable(err):
		return fault.Wrap(fault.Unavailable, err, "not stored, try again: %v", err)
	}
	return err
}

// IsConflict reports whether a batch lost to another one.
func IsConflict(err error) bool {
	var conflict *journal.ConflictError
	return errors.As(err, &conflict)
}
