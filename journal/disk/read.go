package disk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/internal/order"
)

// Head implements journal.Engine.
func (e *Engine) Head(ctx context.Context, log journal.LogName) (journal.Heads, error) {
	if err := log.Validate(); err != nil {
		return journal.Heads{}, err
	}
	if ctx.Err() != nil {
		return journal.Heads{}, context.Cause(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	v, err := e.enterSeen(ctx)
	if err != nil {
		return journal.Heads{}, err
	}
	defer v.leave()
	ordered, ticket, err := e.book.Head(log)
	if err != nil {
		return journal.Heads{}, err
	}
	durable, err := base{e}.Head(log)
	return journal.Heads{
		Durable: e.public(v.visible(durable)), Ordered: e.public(ordered), Pending: ticket,
	}, err
}

func (e *Engine) public(h order.Head) journal.Head {
	return journal.Head{Epoch: e.epoch, Incarnation: h.ID.Incarnation(), Seq: h.Seq, Offset: h.Offset}
}

// enterLog begins a read of a log. It returns the view and the log's head in it.
func (e *Engine) enterLog(ctx context.Context, log journal.LogName) (*view, order.Head, error) {
	if err := log.Validate(); err != nil {
		return nil, order.Head{}, err
	}
	if ctx.Err() != nil {
		return nil, order.Head{}, context.Cause(ctx)
	}
	e.mu.Lock()
	v, err := e.enterSeen(ctx)
	if err != nil {
		e.mu.Unlock()
		return nil, order.Head{}, err
	}
	head, known := e.heads.get(log)
	e.mu.Unlock()
	if !known {
		// The disk is read without the lock.
		if head, err = v.rawHead(log); err != nil {
			v.leave()
			return nil, order.Head{}, err
		}
		e.mu.Lock()
		if e.view == v {
			e.heads.put(log, head)
		}
		e.mu.Unlock()
	}
	return v, v.visible(head), nil
}

// Read implements journal.Engine.
func (e *Engine) Read(ctx context.Context, log journal.LogName, opts journal.ReadOptions) (journal.Page, error) {
	v, head, err := e.enterLog(ctx, log)
	if err != nil {
		return journal.Page{}, err
	}
	defer v.leave()
	page := journal.Page{Head: e.public(head)}
	if opts.Incarnation != 0 && opts.Incarnation != page.Head.Incarnation {
		return page, journal.Recreated(log, opts, page.Head)
	}
	if head.ID == 0 {
		return page, nil
	}
	from, to := opts.Range(head.Seq)
	if from > to {
		return page, nil
	}
	page.Entries, page.Next, err = v.records(log, head.ID, from, to, opts.Backward, opts.Limits.WithDefaults())
	return page, err
}

// records reads from a range of a log; every record of the range must exist.
func (v *view) records(
	log journal.LogName, id order.ID, from, to uint64, backward bool, limits journal.Limits,
) (entries []journal.Entry, next uint64, err error) {
	entries, next, err = v.scanRecords(log, id, from, to, backward, limits)
	if errors.Is(err, journal.ErrDamaged) {
		// A scan touches every table of its range; a lookup of one record touches
		// only the table that has it.
		return v.lookUpRecords(log, id, from, to, backward, limits)
	}
	return entries, next, err
}

func (v *view) lookUpRecords(
	log journal.LogName, id order.ID, from, to uint64, backward bool, limits journal.Limits,
) (entries []journal.Entry, next uint64, err error) {
	size := 0
	for left := to - from + 1; left > 0; left-- {
		seq := to - left + 1
		if backward {
			seq = from + left - 1
		}
		var e journal.Entry
		found, err := v.get(layout.RecordKey(nil, id, seq), func(value []byte) error {
			r, err := layout.DecodeRecord(value, id, seq)
			e = journal.Entry{Seq: seq, Offset: r.Offset, Data: append([]byte{}, r.Data...)}
			return err
		})
		if err == nil && !found {
			err = errors.New("it is missing")
		}
		if err != nil {
			if len(entries) > 0 {
				return entries, seq, nil // the next page returns the error
			}
			return nil, 0, layout.Damaged(err, "record %d of log %v", seq, log)
		}
		if len(entries) > 0 && (len(entries) == limits.Entries || size+len(e.Data) > limits.Bytes) {
			return entries, seq, nil
		}
		size += len(e.Data)
		entries = append(entries, e)
	}
	return entries, 0, nil
}

func (v *view) scanRecords(
	log journal.LogName, id order.ID, from, to uint64, backward bool, limits journal.Limits,
) (entries []journal.Entry, next uint64, err error) {
	it, err := v.iter(layout.RecordKey(nil, id, from), layout.RecordKey(nil, id, to+1))
	if err != nil {
		return nil, 0, err
	}
	defer it.Close() //nolint:errcheck // read errors are looked at below
	seq, valid, step := from, it.First, it.Next
	if backward {
		seq, valid, step = to, it.Last, it.Prev
	}
	expect := min(to-from+1, uint64(limits.Entries))
	entries = make([]journal.Entry, 0, expect)
	var space []byte // one allocation for many records
	size, left := 0, to-from+1
	for ok := valid(); left > 0; ok = step() {
		if !ok || binary.BigEndian.Uint64(it.Key()[9:]) != seq {
			if err := it.Error(); err != nil {
				return nil, 0, damagedRead(layout.StoreError(err), log, seq)
			}
			return nil, 0, layout.Damaged(nil, "record %d of log %v is missing; it", seq, log)
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, 0, damagedRead(layout.StoreError(err), log, seq)
		}
		r, err := layout.DecodeRecord(value, id, seq)
		if err != nil {
			return nil, 0, layout.Damaged(err, "record %d of log %v", seq, log)
		}
		if len(entries) > 0 && (len(entries) == limits.Entries || size+len(r.Data) > limits.Bytes) {
			return entries, seq, nil
		}
		size += len(r.Data)
		if cap(space)-len(space) < len(r.Data) {
			space = make([]byte, 0, max(len(r.Data), min(32<<10, len(r.Data)*int(expect))))
		}
		at := len(space)
		space = append(space, r.Data...)
		entries = append(entries, journal.Entry{Seq: seq, Offset: r.Offset, Data: space[at:len(space):len(space)]})
		left--
		if backward {
			seq--
		} else {
			seq++
		}
	}
	return entries, 0, nil
}

func damagedRead(err error, log journal.LogName, seq uint64) error {
	return layout.Damaged(err, "record %d of log %v", seq, log)
}

// Logs implements journal.Engine.
func (e *Engine) Logs(ctx context.Context, p journal.PartitionName, opts journal.LogsOptions) (journal.LogsPage, error) {
	if err := p.Validate(); err != nil {
		return journal.LogsPage{}, err
	}
	v, err := e.enter(ctx, e.shard)
	if err != nil {
		return journal.LogsPage{}, err
	}
	defer v.leave()
	prefix := layout.PartitionKey(nil, layout.KindHead, p)
	lower, upper := prefix, layout.After(prefix)
	if opts.After != (journal.LogName{}) {
		if err := opts.After.Validate(); err != nil {
			return journal.LogsPage{}, err
		}
		// After may be a log of another partition.
		if from := append(layout.HeadKey(nil, opts.After), 0); bytes.Compare(from, lower) > 0 {
			lower = from
		}
		if bytes.Compare(lower, upper) >= 0 {
			return journal.LogsPage{}, nil
		}
	}
	limit := journal.Limits{Entries: opts.Limit}.WithDefaults().Entries
	var page journal.LogsPage
	err = v.eachHead(lower, upper, func(log journal.LogName, head order.Head) bool {
		if opts.Family != "" && log.Family != opts.Family {
			return true
		}
		if head = v.visible(head); head.ID == 0 {
			return true
		}
		if len(page.Logs) == limit {
			page.More = true
			return false
		}
		page.Logs = append(page.Logs, journal.LogInfo{Log: log, Head: e.public(head)})
		return true
	})
	return page, err
}

// eachHead calls each for heads in the order of their keys.
func (v *view) eachHead(lower, upper []byte, each func(journal.LogName, order.Head) bool) error {
	it, err := v.iter(lower, upper)
	if err != nil {
		return err
	}
	defer it.Close() //nolint:errcheck // read errors are looked at below
	for ok := it.First(); ok; ok = it.Next() {
		log, rest, err := journal.CutLogName(it.Key()[1:])
		if err != nil || len(rest) > 0 {
			return layout.Damaged(layout.ErrKey, "the key %x", it.Key())
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return layout.StoreError(err)
		}
		head, err := layout.DecodeHead(it.Key(), value)
		if err != nil {
			return layout.Damaged(err, "the head of log %v", log)
		}
		if !each(log, head) {
			return nil
		}
	}
	if err := it.Error(); err != nil {
		return layout.StoreError(err)
	}
	return nil
}
