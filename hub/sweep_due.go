package hub

import (
	"context"
	"slices"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// deadline is what an adapter wants to be reminded of.
type deadline struct {
	name string
	at   expect.Instant
}

func deadlinesAfter(list []deadline, r schema.SideRecord) []deadline {
	next := slices.DeleteFunc(slices.Clone(list), func(d deadline) bool { return d.name == r.Name })
	if r.Due != 0 {
		next = append(next, deadline{r.Name, expect.Instant(r.Due)})
	}
	return next
}

func (d deadline) key(channelID string) []byte {
	return schema.DeadlineKey(d.at.Time(), d.name, channelID)
}

// deadlines sets, moves and removes what an adapter wants to be reminded of.
func (b *batch) deadlines(list []channel.Deadline) error {
	for _, d := range list {
		current := b.currentMarks().due
		known := slices.ContainsFunc(current, func(old deadline) bool { return old.name == d.Name })
		if limit := b.hub.opts.Limits.Deadlines; !known && !d.At.IsZero() && len(current) >= limit {
			return fault.New(fault.TooLarge, "channel '%s' has %d deadlines, which is the limit (limits.deadlines)", b.ch.id, limit)
		}
		b.setDeadline(deadline{d.Name, expect.InstantOf(d.At)})
	}
	return nil
}

func (b *batch) setDeadline(d deadline) {
	current := b.currentMarks().due
	i := slices.IndexFunc(current, func(old deadline) bool { return old.name == d.name })
	if i < 0 && d.at.IsZero() || i >= 0 && current[i] == d {
		return
	}
	b.sideNote(schema.SideRecord{Kind: schema.SideDeadline, Name: d.name, Due: int64(d.at)}, func(r *journal.Record) {
		if i >= 0 {
			r.Remove = append(r.Remove, current[i].key(b.ch.id))
		}
		if !d.at.IsZero() {
			r.Put = append(r.Put, journal.IndexPut{Key: d.key(b.ch.id), Value: []byte(d.name)})
		}
	})
}

// dropDeadlines is what the end of a channel removes from the index.
func (b *batch) dropDeadlines() [][]byte {
	var keys [][]byte
	for _, d := range b.currentMarks().due {
		keys = append(keys, d.key(b.ch.id))
	}
	return keys
}

// SweepDeadlines tells adapters of the deadlines that have come, and returns
// how many that were.
func (h *Hub) SweepDeadlines(ctx context.Context) (n int) {
	now := h.now()
	scan := schema.DueBy(schema.DueAdapter, now)
	for entry, err := range journal.IndexAll(ctx, h.journal, scan) {
		if err != nil {
			h.log.Error("sweep failed", "kind", schema.DueAdapter, "error", err)
			return n
		}
		id, name := schema.LastPart(entry.Key), string(entry.Value)
		if err := h.remind(ctx, id, name, entry.Key); err != nil {
			h.log.Error("sweep could not act", "kind", schema.DueAdapter, "id", id, "name", name, "error", err)
			continue
		}
		n++
	}
	return n
}

// remind tells a channel's adapter of one deadline, and removes it in the same
// batch.
func (h *Hub) remind(ctx context.Context, id, name string, due []byte) error {
	p, err := h.writeBatch(ctx, id, func(b *batch) error {
		if b.state == nil && !b.meta.State.Terminal() {
			return errNothing // it is told when it can be folded again
		}
		return b.remind(name, due)
	})
	if err != nil || p == nil {
		return ignoreMissing(unavailable(err))
	}
	_, err = p.Wait(ctx)
	return err
}

func (b *batch) remind(name string, due []byte) error {
	current := b.currentMarks().due
	i := slices.IndexFunc(current, func(d deadline) bool { return d.name == name })
	if i < 0 || string(current[i].key(b.ch.id)) != string(due) {
		// Moved or removed since, by a batch that is on its way.
		b.sideNote(schema.SideRecord{Kind: schema.SideScheduled}, func(r *journal.Record) { r.Remove = append(r.Remove, due) })
		return nil
	}
	at := current[i].at
	b.setDeadline(deadline{name: name})
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
