package hub

import (
	"errors"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/journal"
)

// unavailable gives the journal's errors a code of the catalogue.
func unavailable(err error) error {
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

// boundRecord refuses a record that would make lists too long to send.
func (h *Hub) boundRecord(what string, size int) error {
	if limit := h.opts.Limits.RecordBytes; size > limit {
		return fault.New(fault.TooLarge, "%s: %d bytes; at most %d (limits.record)", what, size, limit)
	}
	return nil
}

func isConflict(err error) bool {
	var conflict *journal.ConflictError
	return errors.As(err, &conflict)
}

func ignoreMissing(err error) error {
	if fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	return err
}
