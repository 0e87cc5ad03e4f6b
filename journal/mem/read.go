package mem

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/internal/follow"
	"github.com/parley-hub/parley/journal/internal/order"
)

// Head implements journal.Engine.
func (e *Engine) Head(ctx context.Context, name journal.LogName) (journal.Heads, error) {
	if err := name.Validate(); err != nil {
		return journal.Heads{}, err
	}
	if err := e.enter(ctx, 0); err != nil {
		return journal.Heads{}, err
	}
	defer e.store.mu.Unlock()
	_, book := e.of(name.Of())
	ordered, ticket, err := book.Head(name)
	return journal.Heads{Durable: e.public(e.durableHead(name)), Ordered: e.public(ordered), Pending: ticket}, err
}

func (e *Engine) durableHead(name journal.LogName) order.Head {
	sh, book := e.of(name.Of())
	head, _ := base{sh}.Head(name)
	if head.ID != 0 && book.Gone(name, head.ID.Incarnation()) {
		return order.Head{}
	}
	return head
}

func (e *Engine) public(h order.Head) journal.Head {
	return journal.Head{
		Epoch: e.store.epoch, Incarnation: h.ID.Incarnation(), Seq: h.Seq, Offset: h.Offset,
	}
}

// Read implements journal.Engine.
func (e *Engine) Read(ctx context.Context, name journal.LogName, opts journal.ReadOptions) (journal.Page, error) {
	if err := name.Validate(); err != nil {
		return journal.Page{}, err
	}
	if err := e.enter(ctx, 0); err != nil {
		return journal.Page{}, err
	}
	defer e.store.mu.Unlock()
	head := e.durableHead(name)
	page := journal.Page{Head: e.public(head)}
	if opts.Incarnation != 0 && opts.Incarnation != page.Head.Incarnation {
		return page, journal.Recreated(name, opts, page.Head)
	}
	if head.ID == 0 {
		return page, nil
	}
	l := e.store.of(name.Of()).logs[name]
	from, to := opts.Range(head.Seq)
	limits := opts.Limits.WithDefaults()
	size := 0
	for n := from; n <= to; n++ {
		seq := n
		if opts.Backward {
			seq = to - (n - from)
		}
		r := &l.records[seq-1]
		if len(page.Entries) > 0 && (len(page.Entries) == limits.Entries || size+len(r.Data) > limits.Bytes) {
			page.Next = seq
			break
		}
		size += len(r.Data)
		page.Entries = append(page.Entries, journal.Entry{Seq: seq, Offset: r.offset, Data: copyBytes(r.Data)})
	}
	return page, nil
}

// Logs implements journal.Engine.
func (e *Engine) Logs(ctx context.Context, p journal.PartitionName, opts journal.LogsOptions) (journal.LogsPage, error) {
	if err := p.Validate(); err != nil {
		return journal.LogsPage{}, err
	}
	if err := e.enter(ctx, 0); err != nil {
		return journal.LogsPage{}, err
	}
	defer e.store.mu.Unlock()
	after := encoded(opts.After)
	var found []journal.LogInfo
	for name := range e.store.of(p).logs {
		if name.Of() != p || (opts.Family != "" && name.Family != opts.Family) {
			continue
		}
		if opts.After != (journal.LogName{}) && bytes.Compare(encoded(name), after) <= 0 {
			continue
		}
		if head := e.durableHead(name); head.ID != 0 {
			found = append(found, journal.LogInfo{Log: name, Head: e.public(head)})
		}
	}
	slices.SortFunc(found, func(a, b journal.LogInfo) int { return bytes.Compare(encoded(a.Log), encoded(b.Log)) })
	limit := journal.Limits{Entries: opts.Limit}.WithDefaults().Entries
	if len(found) > limit {
		return journal.LogsPage{Logs: found[:limit], More: true}, nil
	}
	return journal.LogsPage{Logs: found}, nil
}

func encoded(name journal.LogName) []byte {
	b, _ := name.AppendBinary(nil)
	return b
}

// Scan implements journal.Engine.
func (e *Engine) Scan(ctx context.Context, shard int, opts journal.ScanOptions) (journal.ScanPage, error) {
	if err := e.enter(ctx, shard); err != nil {
		return journal.ScanPage{}, err
	}
	defer e.store.mu.Unlock()
	cursor, err := decodeCursor(opts.After)
	if err != nil {
		return journal.ScanPage{}, err
	}
	limits := opts.Limits.WithDefaults()
	var page journal.ScanPage
	var last indexEntry
	size := 0
	index := e.store.shards[shard].index
	for n := range index {
		entry := index[n]
		if opts.Backward {
			entry = index[len(index)-1-n]
		}
		if !chosen(entry, opts, cursor) || e.hidden(shard, entry.id) {
			continue
		}
		weight := len(entry.key) + len(entry.value)
		if len(page.Entries) > 0 && (len(page.Entries) == limits.Entries || size+weight > limits.Bytes) {
			page.Next = encodeCursor(last)
			break
		}
		size += weight
		found := journal.IndexEntry{Key: copyBytes(entry.key), Value: copyBytes(entry.value)}
		if opts.Cursors {
			found.Cursor = encodeCursor(entry)
		}
		page.Entries = append(page.Entries, found)
		last = entry
	}
	return page, nil
}

func chosen(entry indexEntry, opts journal.ScanOptions, cursor *indexEntry) bool {
	if !bytes.HasPrefix(entry.key, opts.Prefix) || bytes.Compare(entry.key, opts.From) < 0 {
		return false
	}
	if len(opts.To) > 0 && bytes.Compare(entry.key, opts.To) >= 0 {
		return false
	}
	if cursor == nil {
		return true
	}
	if opts.Backward {
		return compareEntries(entry, *cursor) < 0
	}
	return compareEntries(entry, *cursor) > 0
}

// hidden reports whether an entry's log has been dropped.
func (e *Engine) hidden(shard int, id order.ID) bool {
	l := e.store.shards[shard].byID[id]
	return l == nil || e.books[shard].Gone(l.name, id.Incarnation())
}

func encodeCursor(entry indexEntry) []byte {
	return binary.BigEndian.AppendUint64(copyBytes(entry.key), uint64(entry.id))
}

func decodeCursor(b []byte) (*indexEntry, error) {
	if b == nil {
		return nil, nil
	}
	if len(b) < 8 {
		return nil, &journal.BoundsError{What: "scan cursor: length", Got: len(b), Min: 8, Max: journal.MaxKey + 8}
	}
	at := len(b) - 8
	return &indexEntry{key: b[:at], id: order.ID(binary.BigEndian.Uint64(b[at:]))}, nil
}

// Claim implements journal.Engine.
func (e *Engine) Claim(ctx context.Context, shard int, name string) (journal.ClaimState, error) {
	if err := e.enter(ctx, shard); err != nil {
		return journal.ClaimState{}, err
	}
	defer e.store.mu.Unlock()
	now := e.now()
	var state journal.ClaimState
	book := e.books[shard]
	held, ticket, err := book.Claim(name, now)
	if held != nil {
		state.Ordered = new(held.Claimed)
	}
	state.Pending = ticket
	durable := e.store.shards[shard].claims[name]
	if durable != nil && !order.Expired(durable.Claimed, now) && !book.Gone(durable.Log, durable.Incarnation) {
		state.Durable = new(durable.Claimed)
	}
	return state, err
}

// Follow implements journal.Engine.
func (e *Engine) Follow(_ context.Context, name journal.LogName, after journal.Position) (journal.Follower, error) {
	if err := name.Validate(); err != nil {
		return nil, err
	}
	return follow.Log(e, e.bell, e.Shard(name.Of()), name, after), nil
}

// FollowShard implements journal.Engine.
func (e *Engine) FollowShard(ctx context.Context, shard int, after journal.ShardPosition) (journal.ShardFollower, error) {
	if err := e.enter(ctx, shard); err != nil {
		return nil, err
	}
	e.store.mu.Unlock()
	return follow.Shard(e, e.bell, shard, after), nil
}

// Commits returns at most a page of durable commits after an offset.
func (e *Engine) Commits(ctx context.Context, shard int, after uint64) ([]journal.Commit, error) {
	if err := e.enter(ctx, shard); err != nil {
		return nil, err
	}
	defer e.store.mu.Unlock()
	var commits []journal.Commit
	size := 0
	all := e.store.shards[shard].commits
	for offset := after + 1; offset <= uint64(len(all)); offset++ {
		if len(commits) == journal.DefaultPageEntries || size > journal.DefaultPageBytes {
			break
		}
		stored := &all[offset-1]
		c := journal.Commit{
			Position: journal.ShardPosition{Epoch: e.store.epoch, Offset: offset},
			Values:   slices.Clone(stored.values),
		}
		if r := stored.dropped; r != nil && r.Whole() {
			c.DroppedPartition = new(r.Partition)
		} else if r != nil {
			c.DroppedLog = new(r.Log)
		}
		for _, w := range stored.writes {
			c.Writes = append(c.Writes, e.written(shard, w, offset, &size))
		}
		commits = append(commits, c)
	}
	return commits, nil
}

func (e *Engine) written(shard int, w write, offset uint64, size *int) journal.Write {
	out := journal.Write{Log: w.name, Incarnation: w.id.Incarnation(), First: w.first, Last: w.last}
	if e.hidden(shard, w.id) {
		out.Dropped = true
		return out
	}
	l := e.store.shards[shard].byID[w.id]
	for seq := w.first; seq <= w.last; seq++ {
		data := l.records[seq-1].Data
		*size += len(data)
		out.Entries = append(out.Entries, journal.Entry{Seq: seq, Offset: offset, Data: copyBytes(data)})
	}
	return out
}

// Values implements journal.Engine.
func (e *Engine) Values(ctx context.Context, p journal.PartitionName, opts journal.ValuesOptions) (journal.ValuesPage, error) {
	if err := p.Validate(); err != nil {
		return journal.ValuesPage{}, err
	}
	if err := e.enter(ctx, 0); err != nil {
		return journal.ValuesPage{}, err
	}
	defer e.store.mu.Unlock()
	source := e.store.of(p).values
	if opts.Lazy {
		source = e.visibleLazy(p)
	}
	var found []journal.NamedValue
	for key, v := range source {
		if key.Partition == p && strings.HasPrefix(key.Name, opts.Prefix) && key.Name > opts.After {
			found = append(found, journal.NamedValue{Name: key.Name, Value: v.Clone()})
		}
	}
	slices.SortFunc(found, func(a, b journal.NamedValue) int { return strings.Compare(a.Name, b.Name) })
	limits := opts.Limits.WithDefaults()
	size := 0
	for i, v := range found {
		weight := len(v.Name) + len(v.Data)
		if i > 0 && (i == limits.Entries || size+weight > limits.Bytes) {
			return journal.ValuesPage{Values: found[:i], More: true}, nil
		}
		size += weight
	}
	return journal.ValuesPage{Values: found}, nil
}
