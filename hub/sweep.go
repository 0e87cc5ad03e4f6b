package hub

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/content"
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/marks"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/internal/loop"
	"github.com/parley-hub/parley/journal"
)

// startSweepers starts the loops that act on what is due. Deadlines are a durable
// index ordered by time, so a sweep reads what is due and loads only those
// channels.
func (h *Hub) startSweepers(ctx context.Context) {
	h.sweepers = loop.New(ctx, h.hooks.isolated)
	every := h.sweepers.Start
	every(h.opts.TTLSweep, func(ctx context.Context) { h.SweepTTL(ctx) })
	every(h.opts.ExpectationSweep, func(ctx context.Context) { h.SweepExpectations(ctx) })
	every(min(time.Second, h.opts.InviteAckTimeout), func(ctx context.Context) { h.SweepInvites(ctx) })
	every(time.Second, func(ctx context.Context) { h.SweepDeadlines(ctx) })
	every(h.opts.TTLSweep, func(ctx context.Context) { h.SweepDrops(ctx) })
	every(content.AbandonAfter/12, func(ctx context.Context) { h.SweepAbandoned(ctx) })
	every(time.Second, func(ctx context.Context) { h.SweepRequests(ctx) })
	every(h.opts.EvictAfter, func(context.Context) { h.evict(h.now().Add(-h.opts.EvictAfter)) })
	every(min(time.Second, h.opts.EvictAfter), func(context.Context) {
		if h.channels.crowded() {
			h.evict(h.now().Add(-h.opts.EvictAfter))
		}
	})
}

// SweepInvites ends openings that nobody answered in time.
func (h *Hub) SweepInvites(ctx context.Context) int {
	return h.sweep(ctx, schema.DueInvite, func(id string) error {
		return h.endIf(ctx, id, func(m *channel.Metadata) bool { return m.State == channel.Pending }, func(b *batch) error {
			return b.end(channel.Closed, "invite_timeout")
		})
	})
}

// SweepTTL ends channels and tasks whose time has run out.
func (h *Hub) SweepTTL(ctx context.Context) int {
	n := h.sweep(ctx, schema.DueTTL, func(id string) error {
		return h.endIf(ctx, id, func(*channel.Metadata) bool { return true }, func(b *batch) error {
			return b.end(channel.Expired, "ttl_expired")
		})
	})
	return n + h.sweepTasks(ctx)
}

// sweep calls act for the id of every due entry of a kind, and removes the entry
// if the act did not.
func (h *Hub) sweep(ctx context.Context, kind string, act func(id string) error) int {
	return h.sweepEntries(ctx, kind, schema.DueBy(kind, h.now()), func(entry journal.IndexEntry) error {
		id := schema.LastPart(entry.Key)
		if err := act(id); err != nil {
			return err
		}
		h.forgetDue(ctx, id, entry.Key)
		return nil
	})
}

// sweepEntries calls act for every entry of a scan, and returns how many times it
// succeeded. An entry that fails is tried again at the next sweep and does not
// stop the others.
func (h *Hub) sweepEntries(ctx context.Context, kind string, scan journal.ScanOptions, act func(entry journal.IndexEntry) error) (n int) {
	for entry, err := range journal.IndexAll(ctx, h.journal, scan) {
		if err != nil {
			h.log.Error("sweep failed", "kind", kind, "error", err)
			return n
		}
		if err := act(entry); err != nil {
			h.log.Error("sweep could not act", "kind", kind, "id", schema.LastPart(entry.Key), "value", string(entry.Value), "error", err)
			continue
		}
		n++
	}
	return n
}

// endIf ends a channel that has not ended and meets a condition.
func (h *Hub) endIf(ctx context.Context, id string, cond func(*channel.Metadata) bool, end func(*batch) error) error {
	m, err := h.Channel(ctx, id)
	if fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	if err != nil || m.State.Terminal() || !cond(m) {
		return err
	}
	_, err = h.endChannel(ctx, id, func(b *batch) error {
		if !cond(b.meta) {
			return errNothing
		}
		return end(b)
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// forgetDue removes a deadline that was acted on, if the act did not.
func (h *Hub) forgetDue(ctx context.Context, id string, due []byte) {
	page, err := h.journal.Scan(ctx, h.shardOf(id), journal.ScanOptions{Prefix: due, Limits: journal.Limits{Entries: 1}})
	if err != nil || len(page.Entries) == 0 {
		return
	}
	ch, err := h.lock(ctx, id)
	if err != nil {
		return
	}
	b := h.newBatch(ch)
	b.sideNote(schema.SideRecord{Kind: schema.SideScheduled}, func(r *journal.Record) { r.Remove = append(r.Remove, due) })
	_, err = b.order(ctx)
	ch.mu.Unlock()
	if err != nil {
		h.log.Warn("deadline not removed", "id", id, "error", err)
	}
}

// AddSweeper calls sweep at an interval, first after one interval, until it is
// removed or the hub closes. A sweep that panics is called again.
func (h *Hub) AddSweeper(name string, every time.Duration, sweep func(context.Context)) error {
	switch {
	case name == "":
		return fault.New(fault.Invalid, "a sweeper has a name; any non-empty text is accepted")
	case every <= 0:
		return fault.New(fault.Invalid, "sweeper '%s' would run every %s; a positive interval is wanted", name, every)
	}
	switch h.sweepers.StartNamed(name, every, sweep) {
	case loop.Closed:
		return errClosed
	case loop.Taken:
		return fault.New(fault.Conflict, "a sweeper named '%s' runs already; remove it first, or choose another name", name)
	}
	return nil
}

// RemoveSweeper stops a sweeper and reports whether there was one. A sweep that is
// under way sees its context end.
func (h *Hub) RemoveSweeper(name string) bool { return h.sweepers.Stop(name) }

// SweepAbandoned removes seeds and content that were begun more than an hour ago
// and are not complete, and returns how many.
func (h *Hub) SweepAbandoned(ctx context.Context) int {
	return h.dropAbandoned(ctx, schema.DueBy(schema.DueSeed, h.now()))
}

// dropAllAbandoned removes everything that is not complete. While the hub opens,
// nobody completes it any more.
func (h *Hub) dropAllAbandoned(ctx context.Context) {
	h.dropAbandoned(ctx, journal.ScanOptions{Prefix: schema.Key(schema.IndexDue, schema.DueSeed, "")})
}

func (h *Hub) dropAbandoned(ctx context.Context, scan journal.ScanOptions) int {
	return h.sweepEntries(ctx, schema.DueSeed, scan, func(entry journal.IndexEntry) error {
		return h.dropUnfinished(ctx, string(entry.Value), schema.LastPart(entry.Key))
	})
}

// dropUnfinished removes the logs of a seed or a content; that with the entry in
// the index goes last, so that a removal that is interrupted is found again.
func (h *Hub) dropUnfinished(ctx context.Context, family, id string) error {
	if home, own := schema.Split(id); family == schema.FamilyContent {
		return h.drop(ctx, h.tenant.ContentLog(home, own))
	}
	logs := h.tenant.Channel(id)
	if err := h.drop(ctx, logs.History()); err != nil {
		return err
	}
	return h.drop(ctx, logs.Side())
}

// deadlines sets, moves and removes an adapter's deadlines.
func (b *batch) deadlines(list []channel.Deadline) error {
	for _, d := range list {
		current := b.currentMarks().Due
		known := slices.ContainsFunc(current, func(old marks.Deadline) bool { return old.Name == d.Name })
		if limit := b.hub.opts.Limits.Deadlines; !known && !d.At.IsZero() && len(current) >= limit {
			return fault.New(fault.TooLarge, "channel '%s' has %d deadlines, which is the limit (limits.deadlines)", b.ch.id, limit)
		}
		b.setDeadline(marks.Deadline{Name: d.Name, At: expect.InstantOf(d.At)})
	}
	return nil
}

func (b *batch) setDeadline(d marks.Deadline) {
	current := b.currentMarks().Due
	i := slices.IndexFunc(current, func(old marks.Deadline) bool { return old.Name == d.Name })
	if i < 0 && d.At.IsZero() || i >= 0 && current[i] == d {
		return
	}
	b.sideNote(schema.SideRecord{Kind: schema.SideDeadline, Name: d.Name, Due: int64(d.At)}, func(r *journal.Record) {
		if i >= 0 {
			r.Remove = append(r.Remove, current[i].Key(b.ch.id))
		}
		if !d.At.IsZero() {
			r.Put = append(r.Put, journal.IndexPut{Key: d.Key(b.ch.id), Value: []byte(d.Name)})
		}
	})
}

// dropDeadlines returns the index entries that the end of a channel removes.
func (b *batch) dropDeadlines() [][]byte {
	var keys [][]byte
	for _, d := range b.currentMarks().Due {
		keys = append(keys, d.Key(b.ch.id))
	}
	return keys
}

// SweepDeadlines calls adapters for the deadlines that are due, and returns their number.
func (h *Hub) SweepDeadlines(ctx context.Context) int {
	return h.sweepEntries(ctx, schema.DueAdapter, schema.DueBy(schema.DueAdapter, h.now()), func(entry journal.IndexEntry) error {
		return h.remind(ctx, schema.LastPart(entry.Key), string(entry.Value), entry.Key)
	})
}

// remind calls a channel's adapter for one deadline, and removes the deadline in the same
// batch.
func (h *Hub) remind(ctx context.Context, id, name string, due []byte) error {
	p, err := h.writeBatch(ctx, id, func(b *batch) error {
		if b.state == nil && !b.meta.State.Terminal() {
			return errNothing // it is called when the channel can be folded again
		}
		return b.remind(name, due)
	})
	if err != nil || p == nil {
		return fault.IgnoreNotFound(unavailable(err))
	}
	_, err = p.Wait(ctx)
	return err
}

func (b *batch) remind(name string, due []byte) error {
	current := b.currentMarks().Due
	i := slices.IndexFunc(current, func(d marks.Deadline) bool { return d.Name == name })
	if i < 0 || string(current[i].Key(b.ch.id)) != string(due) {
		// Moved or removed since, by a batch that is on its way.
		b.sideNote(schema.SideRecord{Kind: schema.SideScheduled}, func(r *journal.Record) { r.Remove = append(r.Remove, due) })
		return nil
	}
	at := current[i].At
	b.setDeadline(marks.Deadline{Name: name})
	timed, ok := b.ch.adapter.(channel.Timed)
	if !ok || b.meta.State.Terminal() {
		return nil
	}
	return b.applyAlone(timed.OnDeadline(b.meta, b.state, name, at.Time()))
}

// applyAlone puts effects into a batch that began with no envelope. Claims and
// index entries belong to a stored envelope, so one must be among the effects.
func (b *batch) applyAlone(fx channel.Effects) error {
	for i := range fx.Append {
		if err := b.draft(&fx.Append[i]); err != nil {
			return err
		}
	}
	fx.Append = nil
	return b.apply(fx)
}
