package hub

import (
	"context"
	"io"
	"sync"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/content"
	"github.com/parley-hub/parley/hub/internal/ledger"
	"github.com/parley-hub/parley/journal"
)

// ContentInfo is what is known of a content: a file of a home.
type ContentInfo = content.Info

// ContentPage selects a page of a home's content.
type ContentPage = content.Page

// PutContent stores what a reader gives as a content of a home, in pieces, and
// returns what it is. Nobody sees it before it is complete. If the info has a
// size or a SHA-256, the content must have them; id and time are set here.
func (h *Hub) PutContent(ctx context.Context, home string, info ContentInfo, from io.Reader) (ContentInfo, error) {
	return h.contents.Put(ctx, home, info, from)
}

// Content opens a content. Its bytes are read as they are asked for, one piece at
// a time; seeking reads nothing, so that a range costs what it is long. The
// context is that of the reads.
func (h *Hub) Content(ctx context.Context, home, id string) (ContentInfo, io.ReadSeekCloser, error) {
	return h.contents.Open(ctx, home, id)
}

// Contents lists a home's content by age. Next goes on after the last, and is
// empty at the end.
func (h *Hub) Contents(ctx context.Context, home string, page ContentPage) (list []ContentInfo, next string, err error) {
	return h.contents.List(ctx, home, page)
}

// DropContent removes a content. The removal is written to the home's audit
// first.
func (h *Hub) DropContent(ctx context.Context, home, id string, by *Caller) error {
	return h.contents.Drop(ctx, home, id, func(f ledger.Fields) { by.describe(f) })
}

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
	h.contents.Forget(id)
}

// contentHomes are the hub's homes as its content sees them.
type contentHomes struct{ *Hub }

// Check implements content.Homes.
func (h contentHomes) Check(ctx context.Context, home string) error {
	_, err := h.HomeByID(ctx, home)
	return err
}

// Append implements content.Homes.
func (h contentHomes) Append(ctx context.Context, id string, batch journal.Batch) (*journal.Ticket, error) {
	return h.appendUnfinished(ctx, id, batch)
}
