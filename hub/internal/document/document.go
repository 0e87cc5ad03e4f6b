// Package document stores small named JSON values. It does not depend on the hub.
package document

import (
	"context"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/ledger"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Document is a small named JSON value of a kind. It has no history: the last
// write wins.
type Document struct {
	Name    string
	Data    []byte
	Version uint64 // changes with every write; 0: the document does not exist
}

// Store is the documents of a hub.
type Store struct {
	Ledger *ledger.Ledger
	Bytes  int // the maximum of one document
	Count  int // the maximum of one kind

	mu sync.Mutex // orders edits one after another; they become durable together
}

const (
	maxKind  = 32
	maxName  = 512
	maxEdits = 64
	maxPage  = 1000
)

// Read reads a document.
func (s *Store) Read(ctx context.Context, kind, name string) (Document, error) {
	if err := check(kind, name); err != nil {
		return Document{}, err
	}
	state, err := s.Ledger.Journal.Value(ctx, s.Ledger.Tenant.Document(kind, name))
	if err != nil {
		return Document{}, ledger.Unavailable(err)
	}
	if state.Durable.Version == 0 {
		return Document{}, errNone(kind, name)
	}
	return Document{Name: name, Data: state.Durable.Data, Version: state.Durable.Version}, nil
}

func errNone(kind, name string) error {
	return fault.New(fault.NotFound, "there is no %s document %.100q", kind, name)
}

// Page selects a page of a kind's documents.
type Page struct {
	After string // the last name of the page before
	Limit int    // 0: 50; at most 1,000
}

// List returns documents of a kind by name. Next is the After of the next page, and
// is empty at the end. A page of large documents may be shorter than its limit.
func (s *Store) List(ctx context.Context, kind string, page Page) (list []Document, next string, err error) {
	if err := check(kind, "-"); err != nil {
		return nil, "", err
	}
	if page.Limit <= 0 {
		page.Limit = 50
	}
	prefix := schema.DocumentPrefix(kind)
	options := journal.ValuesOptions{Prefix: prefix, Limits: journal.Limits{Entries: min(page.Limit, maxPage)}}
	if page.After != "" {
		options.After = prefix + page.After
	}
	values, err := s.Ledger.Journal.Values(ctx, s.Ledger.Tenant.Directory(), options)
	if err != nil {
		return nil, "", ledger.Unavailable(err)
	}
	for _, v := range values.Values {
		list = append(list, Document{Name: strings.TrimPrefix(v.Name, prefix), Data: v.Data, Version: v.Version})
	}
	if values.More && len(list) > 0 {
		next = list[len(list)-1].Name
	}
	return list, next, nil
}

func (s *Store) checkEdit(e *Edit) error {
	if err := check(e.Kind, e.Name); err != nil || e.Remove {
		return err
	}
	if limit := s.Bytes; len(e.Data) > limit {
		return fault.New(fault.TooLarge, "%s document %.100q has %d bytes; at most %d (limits.document)", e.Kind, e.Name, len(e.Data), limit)
	}
	if !jsontext.Value(e.Data).IsValid() {
		return fault.New(fault.Invalid, "%s document %.100q is not one valid JSON value", e.Kind, e.Name)
	}
	return nil
}

func check(kind, name string) error {
	valid := kind != "" && len(kind) <= maxKind
	for _, c := range []byte(kind) {
		valid = valid && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	switch {
	case !valid:
		return fault.New(fault.Invalid, "a document's kind is 1 to %d of a-z, 0-9, _ and -, not %.40q", maxKind, kind)
	case name == "" || len(name) > maxName || !utf8.ValidString(name):
		return fault.New(fault.Invalid, "a document's name is 1 to %d bytes of UTF-8 text, not %.40q", maxName, name)
	}
	return nil
}
