package hub

import (
	"context"
	"sync"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/journal"
)

// unfinished keeps batches of seeds and content out of homes that are deleted:
// they are written to a home without one of its channels being loaded.
type unfinished struct {
	mu sync.RWMutex // read-locked while a batch is ordered
}

// appendUnfinished orders a batch of a seed or a content.
func (h *Hub) appendUnfinished(ctx context.Context, id string, commit journal.Batch) (*journal.Ticket, error) {
	h.unfinished.mu.RLock()
	defer h.unfinished.mu.RUnlock()
	if home := HomeOf(id); home != "" {
		if h.homes.closed(id) {
			return nil, fault.New(fault.NotFound, "home '%s' is being deleted", home)
		}
		if _, err := h.HomeByID(ctx, home); err != nil {
			return nil, err
		}
	}
	return h.journal.Append(ctx, commit)
}

// leaveHome waits for batches that are being ordered in a home which has been
// closed. From then on there are none, and its content counts no more.
func (h *Hub) leaveHome(id string) {
	h.unfinished.mu.Lock()
	defer h.unfinished.mu.Unlock()
	h.contents.forget(id)
}
