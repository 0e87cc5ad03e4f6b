package hub

import (
	"context"
	"maps"

	"github.com/parley-hub/parley/hub/internal/document"
	"github.com/parley-hub/parley/journal"
)

// Document is a small named JSON value of a kind: an agent's definition, a
// policy, an access key. It has no history: the last write wins.
type Document = document.Document

// DocumentPage selects a page of a kind's documents.
type DocumentPage = document.Page

// DocumentEdit writes or removes a document.
type DocumentEdit = document.Edit

// AuditNote is an audit record that is stored with what it tells of.
type AuditNote struct {
	Kind   string
	Fields map[string]any
	By     *Caller // who acted
}

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
