package hub

import (
	"context"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// ContentInfo is what is known of a content: a file of a home.
type ContentInfo struct {
	ID        string
	Name      string // as its owner calls it; need not be unique
	Type      string // media type
	Size      int64
	SHA256    string // hex digits
	By        string // who put it
	CreatedAt time.Time
}

// ContentPage selects a page of a home's content.
type ContentPage struct {
	After  string // the id of the last content of the page before
	Limit  int    // 0: 50; at most 1,000
	Newest bool   // the newest first
}

const maxContentPage = 1000

// Contents lists a home's content by age. Next goes on after the last, and is
// empty at the end.
func (h *Hub) Contents(ctx context.Context, home string, page ContentPage) (list []ContentInfo, next string, err error) {
	if _, err := h.HomeByID(ctx, home); err != nil {
		return nil, "", err
	}
	limit := min(page.Limit, maxContentPage)
	if limit <= 0 {
		limit = 50
	}
	scan := listScan(schema.Key(schema.IndexContent, home, ""), page.After, page.Newest)
	for entry, err := range journal.Index(ctx, h.journal, h.journal.Shard(h.tenant.Home(home)), scan) {
		if err != nil {
			return nil, "", unavailable(err)
		}
		if len(list) == limit {
			return list, list[limit-1].ID, nil
		}
		info, err := decodeContent(entry.Value)
		if err != nil {
			return nil, "", err
		}
		list = append(list, info)
	}
	return list, "", nil
}

// contentInfo finds a content that is complete.
func (h *Hub) contentInfo(ctx context.Context, home, id string) (ContentInfo, error) {
	if envelope.ValidID(home) && envelope.ValidID(id) {
		page, err := h.journal.Scan(ctx, h.journal.Shard(h.tenant.Home(home)), journal.ScanOptions{
			Prefix: schema.Key(schema.IndexContent, home, id), Limits: journal.Limits{Entries: 1},
		})
		if err != nil {
			return ContentInfo{}, unavailable(err)
		}
		if len(page.Entries) > 0 {
			return decodeContent(page.Entries[0].Value)
		}
	}
	return ContentInfo{}, fault.New(fault.NotFound, "there is no content '%.100s' in home '%.100s'", id, home)
}

func decodeContent(data []byte) (ContentInfo, error) {
	r, err := schema.DecodeContent(data)
	if err != nil {
		return ContentInfo{}, fault.Wrap(fault.Internal, err, "what a content is cannot be read: %v", err)
	}
	at, err := envelope.ParseTime(r.CreatedAt)
	if err != nil {
		return ContentInfo{}, fault.Wrap(fault.Internal, err, "the time of content '%s' cannot be read: %v", r.ID, err)
	}
	return ContentInfo{ID: r.ID, Name: r.Name, Type: r.Type, Size: r.Size, SHA256: r.SHA256, By: r.By, CreatedAt: at}, nil
}

// DropContent removes a content. The removal is written to the home's audit
// first.
func (h *Hub) DropContent(ctx context.Context, home, id string, by *Caller) error {
	info, err := h.contentInfo(ctx, home, id)
	if err != nil {
		return err
	}
	f := fields{"home_id": home, "content_id": id, "name": info.Name, "size": info.Size, "sha256": info.SHA256}
	by.describe(f)
	if err := h.auditIn(ctx, h.tenant.Home(home), "content_dropped", f); err != nil {
		return err
	}
	if err := h.drop(ctx, h.tenant.ContentLog(home, id)); err != nil {
		return err
	}
	h.contents.release(home, contentCost(info.Size))
	return nil
}
