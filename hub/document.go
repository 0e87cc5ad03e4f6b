package hub

import (
	"context"
	"strings"
	"sync"

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
	maxDocumentKind = 32
	maxDocumentName = 512
)

// documents counts what the limits bound, by kind, once it was counted.
type documents struct {
	mu    sync.Mutex // held while a document is written
	count map[string]int
}

// PutDocument writes a document and returns its version. If expect is set, the
// document must have that version; 0 expects that there is none.
func (h *Hub) PutDocument(ctx context.Context, kind, name string, data []byte, expect *uint64) (uint64, error) {
	if err := checkDocument(kind, name); err != nil {
		return 0, err
	}
	if limit := h.opts.Limits.DocumentBytes; len(data) > limit {
		return 0, fault.New(fault.TooLarge, "%s document %.100q has %d bytes; at most %d (limits.document)", kind, name, len(data), limit)
	}
	if !jsontext.Value(data).IsValid() {
		return 0, fault.New(fault.Invalid, "%s document %.100q is not one valid JSON value", kind, name)
	}
	h.documents.mu.Lock()
	defer h.documents.mu.Unlock()
	before, err := h.Document(ctx, kind, name)
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return 0, err
	}
	if before.Version == 0 {
		if err := h.roomForDocument(ctx, kind); err != nil {
			return 0, err
		}
	}
	version, err := h.writeDocument(ctx, kind, name, before.Version, expect, journal.ValueWrite{Data: data})
	if err == nil && before.Version == 0 {
		h.documents.count[kind]++
	}
	return version, err
}

// RemoveDocument removes a document, which must have the version expect if that
// is set.
func (h *Hub) RemoveDocument(ctx context.Context, kind, name string, expect *uint64) error {
	h.documents.mu.Lock()
	defer h.documents.mu.Unlock()
	before, err := h.Document(ctx, kind, name)
	if err != nil {
		return err
	}
	_, err = h.writeDocument(ctx, kind, name, before.Version, expect, journal.ValueWrite{Delete: true})
	if _, counted := h.documents.count[kind]; err == nil && counted {
		h.documents.count[kind]--
	}
	return err
}

// writeDocument writes over the version that was read, if it is the expected one.
func (h *Hub) writeDocument(ctx context.Context, kind, name string, before uint64, expect *uint64, w journal.ValueWrite) (uint64, error) {
	changed := func() error {
		return fault.New(fault.Conflict, "%s document %.100q has version %d, not the expected one: read it and decide again", kind, name, before)
	}
	if expect != nil && *expect != before {
		return 0, changed()
	}
	w.Key, w.Expect = h.tenant.Document(kind, name), journal.Exactly(before)
	ticket, err := h.journal.Append(ctx, journal.Batch{Values: []journal.ValueWrite{w}})
	if isConflict(err) {
		return 0, changed()
	}
	if err == nil {
		err = ticket.Wait(ctx)
	}
	if err != nil {
		return 0, unavailable(err)
	}
	return ticket.Offset(), nil
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
		return Document{}, fault.New(fault.NotFound, "there is no %s document %.100q", kind, name)
	}
	return Document{Name: name, Data: state.Durable.Data, Version: state.Durable.Version}, nil
}

// DocumentPage selects a page of a kind's documents.
type DocumentPage struct {
	After string // the last name of the page before
	Limit int    // 0: 50
}

// Documents lists the documents of a kind by name. Next goes on after the last,
// and is empty at the end.
func (h *Hub) Documents(ctx context.Context, kind string, page DocumentPage) (list []Document, next string, err error) {
	if err := checkDocument(kind, "-"); err != nil {
		return nil, "", err
	}
	if page.Limit <= 0 {
		page.Limit = 50
	}
	prefix := schema.DocumentPrefix(kind)
	after := ""
	if page.After != "" {
		after = prefix + page.After
	}
	for {
		values, err := h.journal.Values(ctx, h.tenant.Directory(), journal.ValuesOptions{
			Prefix: prefix, After: after, Limits: journal.Limits{Entries: page.Limit - len(list)},
		})
		if err != nil {
			return nil, "", unavailable(err)
		}
		for _, v := range values.Values {
			after = v.Name
			list = append(list, Document{Name: strings.TrimPrefix(v.Name, prefix), Data: v.Data, Version: v.Version})
		}
		switch {
		case !values.More:
			return list, "", nil
		case len(list) >= page.Limit:
			return list, list[len(list)-1].Name, nil
		}
	}
}

// roomForDocument refuses one more document than a kind may have.
func (h *Hub) roomForDocument(ctx context.Context, kind string) error {
	n, counted := h.documents.count[kind]
	if !counted {
		for after := ""; ; {
			list, next, err := h.Documents(ctx, kind, DocumentPage{After: after, Limit: 1000})
			if err != nil {
				return err
			}
			if n += len(list); next == "" {
				break
			}
			after = next
		}
		if h.documents.count == nil {
			h.documents.count = map[string]int{}
		}
		h.documents.count[kind] = n
	}
	if limit := h.opts.Limits.Documents; n >= limit {
		return fault.New(fault.TooLarge, "there are %d %s documents, which is the limit (limits.documents); remove one first", n, kind)
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
	case name == "" || len(name) > maxDocumentName:
		return fault.New(fault.Invalid, "a document's name has 1 to %d bytes, not %d", maxDocumentName, len(name))
	}
	return nil
}
