package disk

import (
	"bytes"
	"context"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
)

// Scan implements journal.Engine. Its cursor is the stored key of the last
// entry.
func (e *Engine) Scan(ctx context.Context, shard int, opts journal.ScanOptions) (journal.ScanPage, error) {
	v, err := e.enter(ctx, shard)
	if err != nil {
		return journal.ScanPage{}, err
	}
	defer v.leave()
	lower, upper, err := scanBounds(opts)
	if err != nil || (upper != nil && bytes.Compare(lower, upper) >= 0) {
		return journal.ScanPage{}, err
	}
	it, err := v.iter(lower, upper)
	if err != nil {
		return journal.ScanPage{}, err
	}
	defer it.Close() //nolint:errcheck // read errors are looked at below
	first, step := it.First, it.Next
	if opts.Backward {
		first, step = it.Last, it.Prev
	}
	limits := opts.Limits.WithDefaults()
	var page journal.ScanPage
	var last []byte
	size := 0
	for ok := first(); ok; ok = step() {
		key, id, err := layout.SplitIndexKey(it.Key())
		if err != nil {
			return journal.ScanPage{}, layout.Damaged(err, "the key %x", it.Key())
		}
		if _, gone := v.hidden[id]; gone {
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return journal.ScanPage{}, layout.StoreError(err)
		}
		if value, err = layout.Checked(it.Key(), value); err != nil {
			return journal.ScanPage{}, layout.Damaged(err, "index entry %q", key)
		}
		weight := len(key) + len(value)
		if len(page.Entries) > 0 && (len(page.Entries) == limits.Entries || size+weight > limits.Bytes) {
			page.Next = last
			return page, nil
		}
		size += weight
		entry := journal.IndexEntry{Key: key, Value: bytes.Clone(value)}
		if opts.Cursors {
			entry.Cursor = bytes.Clone(it.Key())
		}
		page.Entries = append(page.Entries, entry)
		last = append(last[:0], it.Key()...)
	}
	if err := it.Error(); err != nil {
		return journal.ScanPage{}, layout.StoreError(err)
	}
	return page, nil
}

// scanBounds turns the options into a range of stored keys.
func scanBounds(opts journal.ScanOptions) (lower, upper []byte, err error) {
	// A key starts with the prefix if and only if the escaped key starts with the
	// escaped prefix.
	lower = layout.Escape([]byte{layout.KindIndex}, opts.Prefix)
	upper = layout.After(lower)
	if from := layout.Escape([]byte{layout.KindIndex}, opts.From); bytes.Compare(from, lower) > 0 {
		lower = from
	}
	if len(opts.To) > 0 {
		// Up to the end mark of the key itself: longer keys come after it.
		to := append(layout.Escape([]byte{layout.KindIndex}, opts.To), 0, 1)
		if bytes.Compare(to, upper) < 0 {
			upper = to
		}
	}
	if opts.After == nil {
		return lower, upper, nil
	}
	if _, _, err := layout.SplitIndexKey(opts.After); err != nil {
		return nil, nil, &journal.BoundsError{What: "scan cursor: length", Got: len(opts.After), Min: 11, Max: 2*journal.MaxKey + 11}
	}
	if opts.Backward {
		if bytes.Compare(opts.After, upper) < 0 {
			upper = opts.After
		}
	} else if next := append(bytes.Clone(opts.After), 0); bytes.Compare(next, lower) > 0 {
		lower = next
	}
	return lower, upper, nil
}
