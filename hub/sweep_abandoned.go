package hub

import (
	"context"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// abandonAfter is how long a seed or a content may take to be complete.
const abandonAfter = time.Hour

func errTooLong(what string) error {
	return fault.New(fault.TooLarge, "the %s is not complete after %v, and is removed", what, abandonAfter-time.Minute)
}

// SweepAbandoned removes seeds and content that were begun more than an hour ago
// and are not complete, and returns how many.
func (h *Hub) SweepAbandoned(ctx context.Context) int {
	return h.dropAbandoned(ctx, schema.DueBy(schema.DueSeed, h.now()))
}

// dropAllAbandoned removes everything that is not complete. While the hub opens,
// nobody completes it any more.
func (h *Hub) dropAllAbandoned(ctx context.Context) {
	h.dropAbandoned(ctx, journal.ScanOptions{Prefix: schema.Key(schema.IndexDue, schema.DueSeed, "")})
}

func (h *Hub) dropAbandoned(ctx context.Context, scan journal.ScanOptions) (n int) {
	for entry, err := range journal.IndexAll(ctx, h.journal, scan) {
		if err != nil {
			h.log.Error("sweep failed", "kind", schema.DueSeed, "error", err)
			return n
		}
		id := schema.LastPart(entry.Key)
		if err := h.dropUnfinished(ctx, string(entry.Value), id); err != nil {
			h.log.Error("sweep could not act", "kind", schema.DueSeed, "id", id, "error", err)
			continue
		}
		n++
	}
	return n
}

// dropUnfinished removes the logs of a seed or a content; that with the entry in
// the index goes last, so that a removal that is interrupted is found again.
func (h *Hub) dropUnfinished(ctx context.Context, family, id string) error {
	if home, own := schema.Split(id); family == schema.FamilyContent {
		return h.drop(ctx, h.tenant.ContentLog(home, own))
	}
	logs := h.tenant.Channel(id)
	if err := h.drop(ctx, logs.History()); err != nil {
		return err
	}
	return h.drop(ctx, logs.Side())
}
