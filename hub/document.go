package hub

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Document is a small named JSON value of a kind: an agent's definition, a
// policy, an access key. It has no history: the last write wins.
type Document struct {
	Name    string
	Data    []byte
	Version uint64 // changes with every write; 0 is a document that is not there
}

const (
	maxDocumentKind  = 32
	maxDocumentName  = 512
	maxDocumentEdits = 64
	maxDocumentPage  = 1000
)

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
	if err := checkDocument(kind, name); err != nil {
		return Document{}, err
	}
	state, err := h.journal.Value(ctx, h.tenant.Document(kind, name))
	if err != nil {
		return Document{}, unavailable(err)
	}
	if state.Durable.Version == 0 {
		return Document{}, errNoDocument(kind, name)
	}
	return Document{Name: name, Data: state.Durable.Data, Version: state.Durable.Version}, nil
}

func errNoDocument(kind, name string) error {
	return fault.New(fault.NotFound, "there is no %s document %.100q", kind, name)
}

// DocumentPage selects a page of a kind's documents.
type DocumentPage struct {
	After string // the last name of the page before
	Limit int    // 0: 50; at most 1,000
}

// Documents lists documents of a kind by name. Next goes on after the last, and
// is empty at the end. A page of large documents may be shorter than its limit.
func (h *Hub) Documents(ctx context.Context, kind string, page DocumentPage) (list []Document, next string, err error) {
	if err := checkDocument(kind, "-"); err != nil {
		return nil, "", err
	}
	if page.Limit <= 0 {
		page.Limit = 50
	}
	prefix := schema.DocumentPrefix(kind)
	options := journal.ValuesOptions{Prefix: prefix, Limits: journal.Limits{Entries: min(page.Limit, maxDocumentPage)}}
	if page.After != "" {
		options.After = prefix + page.After
	}
	values, err := h.journal.Values(ctx, h.tenant.Directory(), options)
	if err != nil {
		return nil, "", unavailable(err)
	}
	for _, v := range values.Values {
		list = append(list, Document{Name: strings.TrimPrefix(v.Name, prefix), Data: v.Data, Version: v.Version})
	}
	if values.More && len(list) > 0 {
		next = list[len(list)-1].Name
	}
	return list, next, nil
}

func (h *Hub) checkEdit(e *DocumentEdit) error {
	if err := checkDocument(e.Kind, e.Name); err != nil || e.Remove {
		return err
	}
	if limit := h.opts.Limits.DocumentBytes; len(e.Data) > limit {
		return fault.New(fault.TooLarge, "%s document %.100q has %d bytes; at most %d (limits.document)", e.Kind, e.Name, len(e.Data), limit)
	}
	if !jsontext.Value(e.Data).IsValid() {
		return fault.New(fault.Invalid, "%s document %.100q is not one valid JSON value", e.Kind, e.Name)
	}
	return nil
}

func checkDocument(kind, name string) error {
	valid := kind != "" && len(kind) <= maxDocumentKind
	for _, c := range []byte(kind) {
		valid = valid && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	switch {
	case !valid:
		return fault.New(fault.Invalid, "a document's kind is 1 to %d of a-z, 0-9, _ and -, not %.40q", maxDocumentKind, kind)
	case name == "" || len(name) > maxDocumentName || !utf8.ValidString(name):
		return fault.New(fault.Invalid, "a document's name is 1 to %d bytes of UTF-8 text, not %.40q", maxDocumentName, name)
	}
	return nil
}
