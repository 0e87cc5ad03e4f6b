package hub

import (
	"context"
	"io"
	"maps"
	"strings"
	"sync"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/content"
	"github.com/parley-hub/parley/hub/internal/document"
	"github.com/parley-hub/parley/hub/internal/entry"
	"github.com/parley-hub/parley/hub/internal/ledger"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// ContentInfo is what is known of a content: a file of a home.
type ContentInfo = content.Info

// ContentPage selects a page of a home's content.
type ContentPage = content.Page

// PutContent stores a reader's bytes as a content of a home, in pieces, and returns its
// description. It is invisible until it is complete. If the info has a size or a SHA-256,
// the content must match. Id and time are set here, unless the info has an id: then it was
// stored elsewhere before, and keeps both.
func (h *Hub) PutContent(ctx context.Context, home string, info ContentInfo, from io.Reader) (ContentInfo, error) {
	return h.contents.Put(ctx, home, info, from)
}

// Content opens a content. Its bytes are read on demand, one piece at a time; seeking reads
// nothing, so that a range costs its length. The context applies to the reads.
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
// closed. From then on there are none, and its content no longer counts.
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

// Document is a small named JSON value of a kind: an agent's definition, a
// policy, an access key. It has no history: the last write wins.
type Document = document.Document

// DocumentPage selects a page of a kind's documents.
type DocumentPage = document.Page

// DocumentEdit writes or removes a document.
type DocumentEdit = document.Edit

// AuditNote is an audit record that is stored in the same batch as what it describes.
type AuditNote struct {
	Kind   string
	Fields map[string]any
	By     *Caller // who acted
	// Sorted, if it is set, is used instead of Fields and By: short members ordered by
	// name, for callers that write many records.
	Sorted []AuditField
}

// AuditField is a member of an audit record: a text, or a number.
type AuditField = schema.AuditField

// PutDocument writes a document and returns its version. If expect is set, the
// document must have that version; 0 expects that there is none.
func (h *Hub) PutDocument(ctx context.Context, kind, name string, data []byte, expect *uint64) (uint64, error) {
	return h.EditDocuments(ctx, []DocumentEdit{{Kind: kind, Name: name, Data: data, Expect: expect}})
}

// RemoveDocument removes a document, which must have the version expect if that
// is set.
func (h *Hub) RemoveDocument(ctx context.Context, kind, name string, expect *uint64) error {
	_, err := h.EditDocuments(ctx, []DocumentEdit{{Kind: kind, Name: name, Remove: true, Expect: expect}})
	return err
}

// Document reads a document.
func (h *Hub) Document(ctx context.Context, kind, name string) (Document, error) {
	return h.documents.Read(ctx, kind, name)
}

// Documents lists documents of a kind by name. Next goes on after the last, and
// is empty at the end. A page of large documents may be shorter than its limit.
func (h *Hub) Documents(ctx context.Context, kind string, page DocumentPage) (list []Document, next string, err error) {
	return h.documents.List(ctx, kind, page)
}

// EditDocuments makes edits of up to 64 documents and their audit records
// durable as one batch, all or none. It returns the version that the written
// documents have from then on.
func (h *Hub) EditDocuments(ctx context.Context, edits []DocumentEdit, notes ...AuditNote) (uint64, error) {
	records := make([]journal.Record, len(notes))
	for i, note := range notes {
		if note.Sorted != nil {
			var err error
			if records[i], err = h.ledger.SortedAuditRecord(note.Kind, note.Sorted); err != nil {
				return 0, err
			}
			continue
		}
		f := fields(note.Fields)
		if note.By != nil {
			f = make(fields, len(note.Fields)+1)
			maps.Copy(f, note.Fields)
			note.By.describe(f)
		}
		var err error
		if records[i], err = h.auditRecord(note.Kind, f); err != nil {
			return 0, err
		}
	}
	return h.documents.Edit(ctx, edits, records)
}

// Entry is an entry that an adapter put into the index.
type Entry = entry.Entry

// EntryQuery selects entries of a type of channel.
type EntryQuery = entry.Query

// EntryPage is a page of entries in the order of their keys.
type EntryPage = entry.Page

// Entries lists an adapter's own entries.
func (h *Hub) Entries(ctx context.Context, q EntryQuery) (EntryPage, error) {
	return entry.List(ctx, h.journal, h.tenant, q)
}

// entries adds to a record what an adapter puts into the index and removes.
func (b *batch) entries(r *journal.Record, fx *channel.Effects) error {
	if len(fx.Index)+len(fx.Unindex) == 0 {
		return nil
	}
	kind, id := b.meta.Manifest.Type, b.ch.id
	homeKind := ""
	if home := HomeOf(id); home != "" {
		found, err := b.hub.HomeByID(context.Background(), home)
		if err != nil {
			return err
		}
		homeKind = found.Kind
	}
	for _, put := range fx.Index {
		if len(put.Key) > entry.MaxKey || strings.Contains(put.Key, "\x00") {
			return fault.New(fault.TooLarge, "the adapter of channel '%s' puts an entry whose key has %d bytes; at most %d without a zero byte are accepted", id, len(put.Key), entry.MaxKey)
		}
		r.Put = append(r.Put, journal.IndexPut{Key: schema.EntryKey(kind, id, put.Key), Value: put.Value})
		if put.All && homeKind != "" {
			r.Put = append(r.Put, journal.IndexPut{Key: schema.AllEntriesKey(kind, homeKind, id, put.Key), Value: put.Value})
		}
	}
	for _, key := range fx.Unindex {
		r.Remove = append(r.Remove, schema.EntryKey(kind, id, key))
		if homeKind != "" {
			r.Remove = append(r.Remove, schema.AllEntriesKey(kind, homeKind, id, key))
		}
	}
	return nil
}
