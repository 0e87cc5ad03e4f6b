package hub

import (
	"errors"
	"runtime/debug"

	"github.com/parley-hub/parley/fault"
)

// errBroke is a panic of an adapter or an arbiter, which are not all ours. What
// was being put together is thrown away, and nobody else is held up.
var errBroke = errors.New("an adapter or arbiter broke")

// rescue makes a panic an error; it is deferred.
func (h *Hub) rescue(err *error) {
	if r := recover(); r != nil {
		*err = fault.Wrap(fault.Internal, errBroke, "%v: %v", errBroke, r)
		h.log.Error(errBroke.Error(), "panic", r, "stack", string(debug.Stack()))
	}
}

// guarded runs what may break.
func (h *Hub) guarded(do func() error) (err error) {
	defer h.rescue(&err)
	return do()
}
