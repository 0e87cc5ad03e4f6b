package journal

import (
	"context"
	"iter"
)

// Limits of one page, and what a zero means.
const (
	DefaultPageEntries = 256
	MaxPageEntries     = 4096
	DefaultPageBytes   = 1 << 20
	MaxPageBytes       = 8 << 20
)

// Limits bound one page. A page always holds at least one entry if there is
// one, whatever its size.
type Limits struct {
	Entries int // 0: DefaultPageEntries; more than MaxPageEntries counts as that
	Bytes   int // 0: DefaultPageBytes; more than MaxPageBytes counts as that
}

// WithDefaults replaces zeros and bounds what is too large.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Entries: limit(l.Entries, DefaultPageEntries, MaxPageEntries),
		Bytes:   limit(l.Bytes, DefaultPageBytes, MaxPageBytes),
	}
}

func limit(n, whenZero, most int) int {
	if n <= 0 {
		return whenZero
	}
	return min(n, most)
}

// ReadOptions choose records of a log. The zero value reads from the start.
type ReadOptions struct {
	From, To uint64 // first and last sequence, both inclusive; 0: open
	Backward bool   // from the highest sequence down
	Limits   Limits
	// Incarnation, when it is not 0, must be the log's; otherwise the read
	// fails with *GapError.
	Incarnation uint64
}

// Entry is a durable record as it was stored.
type Entry struct {
	Seq    uint64
	Offset uint64 // of its batch
	Data   []byte
}

// Page is a part of a log, all of one moment.
type Page struct {
	Head    Head // the durable end of the log at that moment
	Entries []Entry
	// Next is where to go on: the From of the next forward read, the To of the
	// next backward one. It is 0 when the range is exhausted.
	Next uint64
}

// Records reads the chosen records page by page. Limits apply to each page. The
// pages are of different moments; the incarnation is that of the first, so a
// log that is dropped meanwhile ends the sequence with *GapError.
func Records(ctx context.Context, e Engine, log LogName, opts ReadOptions) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for {
			page, err := e.Read(ctx, log, opts)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, entry := range page.Entries {
				if !yield(entry, nil) {
					return
				}
			}
			if page.Next == 0 {
				return
			}
			opts.Incarnation = page.Head.Incarnation
			if opts.Backward {
				opts.To = page.Next
			} else {
				opts.From = page.Next
			}
		}
	}
}

// LogsOptions choose logs of a partition.
type LogsOptions struct {
	Family string  // "": every family
	After  LogName // the last log of the page before; zero: from the start
	Limit  int     // 0: DefaultPageEntries, at most MaxPageEntries
}

// LogsPage is a part of a partition's logs.
type LogsPage struct {
	Logs []LogInfo
	More bool
}

// LogInfo is a log and its durable end.
type LogInfo struct {
	Log  LogName
	Head Head
}

// Value is a value and its version: the offset of the batch that wrote it, or
// for a lazy value a count of its writes. Version 0 means that there is none.
type Value struct {
	Data    []byte
	Version uint64
}

// Clone returns a copy that shares no bytes; a value that is absent has none.
func (v Value) Clone() Value {
	if v.Version == 0 {
		return Value{}
	}
	return Value{Data: append([]byte{}, v.Data...), Version: v.Version}
}

// ValueState is a value as readers see it and as expectations do.
type ValueState struct {
	Durable Value
	Ordered Value
	Pending *Ticket // of the batch that made Ordered differ; nil when it does not
}

// ValuesOptions choose values of a partition.
type ValuesOptions struct {
	Lazy   bool
	Prefix string
	After  string // the last name of the page before; "": from the start
	Limits Limits
}

// NamedValue is a value in a list.
type NamedValue struct {
	Name string
	Value
}

// ValuesPage is a part of a partition's values.
type ValuesPage struct {
	Values []NamedValue
	More   bool
}

// ScanOptions choose index entries: those whose key starts with Prefix, is not
// below From and is below To. Empty bounds are open.
type ScanOptions struct {
	Prefix   []byte
	From, To []byte
	Backward bool
	Limits   Limits
	After    []byte // ScanPage.Next of the page before
	Cursors  bool   // entries are returned with their cursors
}

// IndexEntry is an entry of the index.
type IndexEntry struct {
	Key    []byte
	Value  []byte
	Cursor []byte // what ScanOptions.After takes to go on behind it; only if asked for
}

// ScanPage is a part of the index, all of one moment.
type ScanPage struct {
	Entries []IndexEntry
	Next    []byte // opaque, for ScanOptions.After; nil when the range is exhausted
}

// Index scans the chosen entries page by page. Limits apply to each page, and
// the pages are of different moments.
func Index(ctx context.Context, e Engine, shard int, opts ScanOptions) iter.Seq2[IndexEntry, error] {
	return indexPages(opts, func(opts ScanOptions) (ScanPage, error) { return e.Scan(ctx, shard, opts) })
}

func indexPages(opts ScanOptions, scan func(ScanOptions) (ScanPage, error)) iter.Seq2[IndexEntry, error] {
	return func(yield func(IndexEntry, error) bool) {
		for {
			page, err := scan(opts)
			if err != nil {
				yield(IndexEntry{}, err)
				return
			}
			for _, entry := range page.Entries {
				if !yield(entry, nil) {
					return
				}
			}
			if page.Next == nil {
				return
			}
			opts.After = page.Next
		}
	}
}
