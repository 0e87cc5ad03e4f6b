// Package entry lists the entries that adapters put into the index with their
// batches.
package entry

import (
	"bytes"
	"context"
	"strings"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/ledger"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Bounds of entries.
const (
	// MaxKey is the maximum length of an entry's key.
	MaxKey       = 512
	maxPage      = 1000    // entries of a page
	maxPageBytes = 4 << 20 // of their keys and values
)

// Entry is an entry that an adapter put into the index.
type Entry struct {
	Channel string // the channel whose envelope put it
	Key     string
	Value   []byte
}

// Query selects entries of a type of channel: those of a home; with a Kind, those
// that are listed for all homes of that kind; with neither, those of channels
// without a home.
type Query struct {
	Type   string
	Home   string // id
	Kind   string // of homes
	Prefix string // of the keys
	// After and Before leave out the entries of a key and all that precede or
	// follow it. Both accept Page.Next.
	After, Before string
	Reverse       bool // the last key first
	Limit         int  // 0: 50, at most 1,000
}

// Page is a page of entries in the order of their keys.
type Page struct {
	Entries []Entry
	// Next continues after the page: pass it as After, or as Before for a reverse
	// query. It is empty at the end.
	Next string
}

// List returns a page of entries.
func List(ctx context.Context, j journal.Engine, tenant schema.Tenant, q Query) (Page, error) {
	if q.Type == "" || q.Home != "" && q.Kind != "" {
		return Page{}, fault.New(fault.Invalid, "entries are listed for one type, and for a home or a kind of homes, not both")
	}
	limit := q.Limit
	if limit <= 0 {
		limit = 50
	}
	limit = min(limit, maxPage)
	scan, prefix := q.scan()
	scan.Limits.Entries = min(limit+1, journal.MaxPageEntries) // one more shows that the page is not the last
	find := func() func(func(journal.IndexEntry, error) bool) {
		if q.Home != "" {
			return journal.Index(ctx, j, j.Shard(tenant.Home(q.Home)), scan)
		}
		return journal.IndexAll(ctx, j, scan)
	}
	var page Page
	size, last := 0, ""
	for found, err := range find() {
		if err != nil {
			return Page{}, ledger.Unavailable(err)
		}
		size += len(found.Key) + len(found.Value)
		if len(page.Entries) == limit || len(page.Entries) > 0 && size > maxPageBytes {
			page.Next = last
			return page, nil
		}
		last = string(found.Key[prefix:])
		key, channelID := schema.CutEntry(last)
		if q.Home != "" {
			channelID = schema.InHome(q.Home, channelID)
		}
		page.Entries = append(page.Entries, Entry{Channel: channelID, Key: key, Value: found.Value})
	}
	return page, nil
}

// scan returns the part of the index to read, and the length of the key prefix that
// is not part of the entry's own key.
func (q *Query) scan() (scan journal.ScanOptions, prefix int) {
	all := schema.EntryPrefix(q.Type, q.Home)
	if q.Kind != "" {
		all = schema.AllEntriesPrefix(q.Type, q.Kind)
	}
	at := func(text, end string) []byte { return append(bytes.Clone(all), text+end...) }
	scan = journal.ScanOptions{Prefix: at(q.Prefix, ""), Backward: q.Reverse}
	if q.After != "" {
		end := "\x01" // after every channel's entry of the key
		if strings.Contains(q.After, "\x00") {
			end = "\x00" // after one entry
		}
		scan.From = at(q.After, end)
	}
	if q.Before != "" {
		end := "\x00" // before the first entry of the key
		if strings.Contains(q.Before, "\x00") {
			end = ""
		}
		scan.To = at(q.Before, end)
	}
	return scan, len(all)
}
