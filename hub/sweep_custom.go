package hub

import (
	"context"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/loop"
)

// AddSweeper calls sweep at an interval, first after one interval, until it is
// removed or the hub closes. A sweep that panics is called again.
func (h *Hub) AddSweeper(name string, every time.Duration, sweep func(context.Context)) error {
	switch {
	case name == "":
		return fault.New(fault.Invalid, "a sweeper has a name; any non-empty text is accepted")
	case every <= 0:
		return fault.New(fault.Invalid, "sweeper '%s' would run every %s; a positive interval is wanted", name, every)
	}
	switch h.sweepers.StartNamed(name, every, sweep) {
	case loop.Closed:
		return errClosed
	case loop.Taken:
		return fault.New(fault.Conflict, "a sweeper named '%s' runs already; remove it first, or choose another name", name)
	}
	return nil
}

// RemoveSweeper stops a sweeper and reports whether there was one. A sweep that is
// under way sees its context end.
func (h *Hub) RemoveSweeper(name string) bool { return h.sweepers.Stop(name) }
