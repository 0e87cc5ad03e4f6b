// Package entry lists what adapters put into the index. Their batches put it there.
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
	// MaxKey bounds the key of an entry.
	MaxKey       = 512
	maxPage      = 1000    // entries of a page
	maxPageBytes = 4 << 20 // of their keys and values
)

// Entry is an entry that an adapter put into the index.
type Entry struct {
	Channel string // whose envelope put it
	Key     string
	Value   []byte
}

// Query selects entries of a type of channel: those of a home, or with a
// Kind those that are listed for all homes of that kind, or with neither those of
// channels without a home.
type Query struct {
	Type   string
	Home   string // id
	Kind   string // of homes
	Prefix string // of the keys
	// After and Before leave out the entries of a key and all before or behind it.
	// They also take Page.Next.
	After, Before string
	Reverse       bool // the last key first
	Limit         int  // 0: 50, at most 1,000
}

// Page is a page of entries in the order of their keys.
type Page struct {
	Entries []Entry
	// Next goes on behind the page: as After, or as Before if it is in reverse. It
	// is empty at the end.
	Next string
}

// List lists entries.
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
	scan.Limits.Entries = min(limit+1, journal.MaxPageEntries) // one more says that the page is not the last
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

// scan is the part of the index to read, and how much of each key is not the
// entry's own.
func (q *Query) scan() (scan journal.ScanOptions, prefix int) {
	all := schema.EntryPrefix(q.Type, q.Home)
	if q.Kind != "" {
		all = schema.AllEntriesPrefix(q.Type, q.Kind)
	}
	at := func(text, end string) []byte { return append(bytes.Clone(all), text+end...) }
	scan = journal.ScanOptions{Prefix: at(q.Prefix, ""), Backward: q.Reverse}
	if q.After != "" {
		end := "\x01" // behind every channel's entry of the key
		if strings.Contains(q.After, "\x00") {
			end = "\x00" // behind one entry
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
