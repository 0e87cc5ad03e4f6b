package hub

import (
	"errors"
	"runtime/debug"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/ledger"
)

// unavailable gives the journal's errors a code of the catalogue.
func unavailable(err error) error { return ledger.Unavailable(err) }

func isConflict(err error) bool { return ledger.IsConflict(err) }

// boundRecord refuses a record that would make lists too long to send.
func (h *Hub) boundRecord(what string, size int) error { return h.ledger.BoundRecord(what, size) }

func ignoreMissing(err error) error {
	if fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// errBroke is a panic of an adapter or an arbiter, which may be the application's.
// The batch that was being built is dropped; other channels are not affected.
var errBroke = errors.New("an adapter or arbiter broke")

// rescue turns a panic into an error. Callers defer it.
func (h *Hub) rescue(err *error) {
	if r := recover(); r != nil {
		*err = fault.Wrap(fault.Internal, errBroke, "%v: %v", errBroke, r)
		h.log.Error(errBroke.Error(), "panic", r, "stack", string(debug.Stack()))
	}
}

// guarded calls do and turns a panic into an error.
func (h *Hub) guarded(do func() error) (err error) {
	defer h.rescue(&err)
	return do()
}
