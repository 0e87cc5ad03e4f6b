package hub

import (
	"bytes"
	"context"
	"strings"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Bounds of adapters' own entries.
const (
	maxEntryKey  = 512
	maxEntryPage = 1000    // entries of a page
	maxPageBytes = 4 << 20 // of their keys and values
)

// Entry is an entry that an adapter put into the index.
type Entry struct {
	Channel string // whose envelope put it
	Key     string
	Value   []byte
}

// EntryQuery selects entries of a type of channel: those of a home, or with a
// Kind those that are listed for all homes of that kind, or with neither those of
// channels without a home.
type EntryQuery struct {
	Type   string
	Home   string // id
	Kind   string // of homes
	Prefix string // of the keys
	// After and Before leave out the entries of a key and all before or behind it.
	// They also take EntryPage.Next.
	After, Before string
	Reverse       bool // the last key first
	Limit         int  // 0: 50, at most 1,000
}

// EntryPage is a page of entries in the order of their keys.
type EntryPage struct {
	Entries []Entry
	// Next goes on behind the page: as After, or as Before if it is in reverse. It
	// is empty at the end.
	Next string
}

// Entries lists an adapter's own entries.
func (h *Hub) Entries(ctx context.Context, q EntryQuery) (EntryPage, error) {
	if q.Type == "" || q.Home != "" && q.Kind != "" {
		return EntryPage{}, fault.New(fault.Invalid, "entries are listed for one type, and for a home or a kind of homes, not both")
	}
	limit := q.Limit
	if limit <= 0 {
		limit = 50
	}
	limit = min(limit, maxEntryPage)
	scan, prefix := q.scan()
	find := func() func(func(journal.IndexEntry, error) bool) {
		if q.Home != "" {
			return journal.Index(ctx, h.journal, h.journal.Shard(h.tenant.Home(q.Home)), scan)
		}
		return journal.IndexAll(ctx, h.journal, scan)
	}
	var page EntryPage
	size, last := 0, ""
	for found, err := range find() {
		if err != nil {
			return EntryPage{}, unavailable(err)
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
func (q *EntryQuery) scan() (scan journal.ScanOptions, prefix int) {
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
	for _, entry := range fx.Index {
		if len(entry.Key) > maxEntryKey || strings.Contains(entry.Key, "\x00") {
			return fault.New(fault.TooLarge, "the adapter of channel '%s' puts an entry whose key has %d bytes; at most %d without a zero byte are accepted", id, len(entry.Key), maxEntryKey)
		}
		r.Put = append(r.Put, journal.IndexPut{Key: schema.EntryKey(kind, id, entry.Key), Value: entry.Value})
		if entry.All && homeKind != "" {
			r.Put = append(r.Put, journal.IndexPut{Key: schema.AllEntriesKey(kind, homeKind, id, entry.Key), Value: entry.Value})
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
