package disk

import (
	"context"

	"github.com/parley-hub/parley/journal"
)

// A group of a copy is durable when the log has it. Its tickets end then, before it
// is applied here: whoever waits for them goes on while the committer applies it, and
// the next group is gathered meanwhile. Reads wait until the group was applied, so
// that whoever was told that a batch is durable reads it.

// endEarly ends the tickets of a group that is durable and not applied yet.
func (e *Engine) endEarly(g *group) {
	e.mu.Lock()
	if e.failure != nil { // its tickets have ended
		e.mu.Unlock()
		return
	}
	e.flight, e.unseen = nil, make(chan struct{})
	e.mu.Unlock()
	g.fate.End(journal.Durable, nil)
}

// awaitSeen waits until readers see every group whose tickets have ended durable; the
// lock is held, and released meanwhile. A store that failed before never shows it.
func (e *Engine) awaitSeen(ctx context.Context) error {
	for e.unseen != nil {
		if e.failure != nil {
			return e.failure
		}
		seen := e.unseen
		e.mu.Unlock()
		select {
		case <-seen:
		case <-e.failed:
		case <-ctx.Done():
		}
		e.mu.Lock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}
