package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
)

// ScanAll is Scan over all shards: one page in the order of the keys' bytes,
// entries under one key in the order of their shards. Its cursor is its own and
// means nothing to Scan. An engine with one shard is asked once and directly.
func ScanAll(ctx context.Context, e Engine, opts ScanOptions) (ScanPage, error) {
	if e.Shards() == 1 {
		return e.Scan(ctx, 0, opts)
	}
	at, err := decodeScanCursor(opts.After, e.Shards())
	if err != nil {
		return ScanPage{}, err
	}
	pages := make([]ScanPage, e.Shards())
	for shard := range pages {
		if pages[shard], err = e.Scan(ctx, shard, at.narrow(opts, shard)); err != nil {
			return ScanPage{}, err
		}
	}
	return mergePages(pages, at, opts), nil
}

// mergePages takes entries from the pages in order until the limits are reached
// or one that has a next page is used up.
func mergePages(pages []ScanPage, at scanCursor, opts ScanOptions) ScanPage {
	limits := opts.Limits.WithDefaults()
	var out ScanPage
	size := 0
	for {
		first := nextPage(pages, opts.Backward)
		if first < 0 {
			return out
		}
		p := &pages[first]
		if len(p.Entries) == 0 { // its next page may have what comes next
			out.Next = at.encode()
			return out
		}
		entry := p.Entries[0]
		weight := len(entry.Key) + len(entry.Value)
		if len(out.Entries) > 0 && (len(out.Entries) == limits.Entries || size+weight > limits.Bytes) {
			out.Next = at.encode()
			return out
		}
		size += weight
		at.key, at.shards[first] = entry.Key, entry.Cursor
		if !opts.Cursors {
			entry.Cursor = nil
		}
		out.Entries = append(out.Entries, entry)
		p.Entries = p.Entries[1:]
	}
}

// nextPage is the page with the first key. A page that is used up but has a next
// one comes first: what it goes on with is not known. It is -1 when nothing is
// left.
func nextPage(pages []ScanPage, backward bool) int {
	first := -1
	for i := range pages {
		if len(pages[i].Entries) == 0 {
			if pages[i].Next != nil {
				return i
			}
			continue
		}
		if first < 0 {
			first = i
			continue
		}
		c := bytes.Compare(pages[i].Entries[0].Key, pages[first].Entries[0].Key)
		if c < 0 && !backward || c > 0 && backward {
			first = i
		}
	}
	return first
}

// scanCursor is where a scan of all shards is: the last key it returned, and
// the cursor of the last entry of each shard.
type scanCursor struct {
	key    []byte
	shards [][]byte
}

// narrow turns the options of the whole scan into those of one shard. A shard
// that had no entry yet begins at the last key, so that keys stay in order
// though entries are put meanwhile.
func (c scanCursor) narrow(opts ScanOptions, shard int) ScanOptions {
	opts.Cursors, opts.After = true, c.shards[shard]
	switch {
	case c.key == nil:
	case !opts.Backward && bytes.Compare(opts.From, c.key) < 0:
		opts.From = c.key
	case opts.Backward:
		// Below the key's successor: up to the key itself.
		if to := append(bytes.Clone(c.key), 0); len(opts.To) == 0 || bytes.Compare(to, opts.To) < 0 {
			opts.To = to
		}
	}
	return opts
}

func (c scanCursor) encode() []byte {
	b := appendSized(nil, c.key)
	for _, cursor := range c.shards {
		b = appendSized(b, cursor)
	}
	return b
}

func appendSized(b, part []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

func decodeScanCursor(b []byte, shards int) (scanCursor, error) {
	c := scanCursor{shards: make([][]byte, shards)}
	if b == nil {
		return c, nil
	}
	for i := -1; i < shards; i++ {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return c, fmt.Errorf("the cursor of a scan over %d shards is cut off: %w", shards, ErrInvalid)
		}
		var part []byte
		if n > 0 {
			part = b[used : used+int(n)]
		}
		b = b[used+int(n):]
		if i < 0 {
			c.key = part
		} else {
			c.shards[i] = part
		}
	}
	if len(b) > 0 {
		return c, fmt.Errorf("the cursor of a scan over %d shards is of another number of shards: %w", shards, ErrInvalid)
	}
	return c, nil
}

// IndexAll reads the chosen entries of all shards page by page, in the order of
// their keys.
func IndexAll(ctx context.Context, e Engine, opts ScanOptions) iter.Seq2[IndexEntry, error] {
	return indexPages(opts, func(opts ScanOptions) (ScanPage, error) { return ScanAll(ctx, e, opts) })
}
