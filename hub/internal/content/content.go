// Package content stores the files of homes in pieces. It does not depend on the
// hub.
package content

import (
	"context"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/ledger"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Info describes a content, which is a file of a home.
type Info struct {
	ID        string
	Name      string // chosen by its owner; need not be unique
	Type      string // media type
	Size      int64
	SHA256    string // hex digits
	By        string // the identity that put it
	CreatedAt time.Time
}

// Limits bound what is stored, in bytes.
type Limits struct {
	Content int64 // one content
	Home    int64 // all of a home
	Hub     int64 // all
}

// Homes checks and writes to the homes that content belongs to.
type Homes interface {
	// Check returns an error if the home does not exist.
	Check(ctx context.Context, home string) error
	// Append orders a batch of an unfinished content. It fails if the home is being
	// deleted.
	Append(ctx context.Context, id string, batch journal.Batch) (*journal.Ticket, error)
}

// Store is the content of a hub's homes.
type Store struct {
	Ledger     *ledger.Ledger
	Homes      Homes
	Limits     Limits
	Background context.Context // for the cleanup after a call has failed

	room room
}

// AbandonAfter is how long storing a content may take.
const AbandonAfter = time.Hour

// ErrTooLong returns the error for something that took so long to store that it is
// removed.
func ErrTooLong(what string) error {
	return fault.New(fault.TooLarge, "the %s is not complete after %v, and is removed", what, AbandonAfter-time.Minute)
}

// Page selects a page of a home's content.
type Page struct {
	After  string // the id of the last content of the page before
	Limit  int    // 0: 50; at most 1,000
	Newest bool   // the newest first
}

const maxPage = 1000

// List returns a home's content by age. Next is the After of the next page, and is
// empty at the end.
func (s *Store) List(ctx context.Context, home string, page Page) (list []Info, next string, err error) {
	if err := s.Homes.Check(ctx, home); err != nil {
		return nil, "", err
	}
	limit := min(page.Limit, maxPage)
	if limit <= 0 {
		limit = 50
	}
	scan := schema.ListScan(schema.Key(schema.IndexContent, home, ""), page.After, page.Newest)
	for entry, err := range journal.Index(ctx, s.Ledger.Journal, s.Ledger.Journal.Shard(s.Ledger.Tenant.Home(home)), scan) {
		if err != nil {
			return nil, "", ledger.Unavailable(err)
		}
		if len(list) == limit {
			return list, list[limit-1].ID, nil
		}
		info, err := decode(entry.Value)
		if err != nil {
			return nil, "", err
		}
		list = append(list, info)
	}
	return list, "", nil
}

// find returns a content that is complete.
func (s *Store) find(ctx context.Context, home, id string) (Info, error) {
	if envelope.ValidID(home) && envelope.ValidID(id) {
		page, err := s.Ledger.Journal.Scan(ctx, s.Ledger.Journal.Shard(s.Ledger.Tenant.Home(home)), journal.ScanOptions{
			Prefix: schema.Key(schema.IndexContent, home, id), Limits: journal.Limits{Entries: 1},
		})
		if err != nil {
			return Info{}, ledger.Unavailable(err)
		}
		if len(page.Entries) > 0 {
			return decode(page.Entries[0].Value)
		}
	}
	return Info{}, fault.New(fault.NotFound, "there is no content '%.100s' in home '%.100s'", id, home)
}

func decode(data []byte) (Info, error) {
	r, err := schema.DecodeContent(data)
	if err != nil {
		return Info{}, fault.Wrap(fault.Internal, err, "what a content is cannot be read: %v", err)
	}
	at, err := envelope.ParseTime(r.CreatedAt)
	if err != nil {
		return Info{}, fault.Wrap(fault.Internal, err, "the time of content '%s' cannot be read: %v", r.ID, err)
	}
	return Info{ID: r.ID, Name: r.Name, Type: r.Type, Size: r.Size, SHA256: r.SHA256, By: r.By, CreatedAt: at}, nil
}

// Drop removes a content. It first writes the removal to the home's audit, with the
// fields that describe adds.
func (s *Store) Drop(ctx context.Context, home, id string, describe func(ledger.Fields)) error {
	info, err := s.find(ctx, home, id)
	if err != nil {
		return err
	}
	f := ledger.Fields{"home_id": home, "content_id": id, "name": info.Name, "size": info.Size, "sha256": info.SHA256}
	describe(f)
	if err := s.Ledger.AuditIn(ctx, s.Ledger.Tenant.Home(home), "content_dropped", f); err != nil {
		return err
	}
	if err := s.Ledger.Drop(ctx, s.Ledger.Tenant.ContentLog(home, id)); err != nil {
		return err
	}
	s.release(home, cost(info.Size))
	return nil
}
