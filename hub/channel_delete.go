package hub

import (
	"context"
	"errors"
	"sync"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Delete removes a channel with everything that belongs to it, and the channels
// that are part of it. Its audit stays, and the deletion is written to the
// directory first.
func (h *Hub) Delete(ctx context.Context, channelID string, by *Caller) error {
	m, err := h.Channel(ctx, channelID)
	if err != nil {
		return err
	}
	if h.hasParts(m) {
		return h.deleteWhole(ctx, m, by)
	}
	if !m.State.Terminal() {
		if _, err := h.closeChannel(ctx, channelID, "deleted", by); err != nil {
			return err
		}
	}
	if err := h.auditDeletion(ctx, m, by); err != nil {
		return err
	}
	if HomeOf(channelID) == "" {
		err = h.dropLogs(ctx, channelID)
	} else {
		err = h.dropInHome(ctx, m)
	}
	if err != nil {
		return err
	}
	h.tellDeleted(m)
	return nil
}

// auditDeletion writes to the directory that a channel is deleted.
func (h *Hub) auditDeletion(ctx context.Context, m *channel.Metadata, by *Caller) error {
	f := fields{"channel_id": m.ID, "manifest_type": m.Manifest.Type, "creator_id": m.Creator}
	by.describe(f)
	record, err := h.auditRecord("channel_deleted", f)
	if err != nil {
		return err
	}
	return h.commit(ctx, journal.Batch{Appends: []journal.Append{
		{Log: h.tenant.Audit(), Records: []journal.Record{record}},
	}})
}

// tellDeleted ends followers and calls listeners of a channel that is gone.
func (h *Hub) tellDeleted(m *channel.Metadata) {
	h.endFollowers(m.ID)
	ev := ChannelEvent{Channel: m.ID, Kind: "deleted", Metadata: m, At: h.now()}
	h.hooks.each(func(l Listener) { l.ChannelEvent(ev) })
}

// endFollowers tells the followers of a channel that it is gone.
func (h *Hub) endFollowers(channelID string) {
	h.board.note(channelID)
	for _, s := range h.followers(channelID) {
		s.close(&Gap{Reason: "the log was dropped"})
	}
}

// dropLogs removes a channel's logs. It keeps the channel locked until they are
// gone, so that nothing is appended to a dropped log.
func (h *Hub) dropLogs(ctx context.Context, channelID string) error {
	ch, err := h.lock(ctx, channelID)
	if Deleted(err) {
		return nil // deleted by another call in the meantime
	}
	if err != nil {
		return err
	}
	defer ch.mu.Unlock()
	tasks, err := h.taskLogs(ctx, ch.logs.Partition())
	if err != nil {
		return err
	}
	ticket, err := h.journal.DropPartition(ctx, ch.logs.Partition(), schema.FamilyAudit)
	if err != nil {
		return unavailable(err)
	}
	h.channels.drop(ch)
	if err := ticket.Wait(ctx); err != nil {
		return unavailable(err)
	}
	return h.dropPlaces(ctx, tasks)
}

// taskLogs lists the logs of the tasks in a partition.
func (h *Hub) taskLogs(ctx context.Context, p journal.PartitionName) (logs []journal.LogName, err error) {
	opts := journal.LogsOptions{Family: schema.FamilyTask}
	for {
		page, err := h.journal.Logs(ctx, p, opts)
		if err != nil {
			return nil, unavailable(err)
		}
		for _, found := range page.Logs {
			logs = append(logs, found.Log)
			opts.After = found.Log
		}
		if !page.More {
			return logs, nil
		}
	}
}

// dropPlaces releases the ids of tasks that are gone. If a crash leaves one, it is free
// too, because its channel is gone.
func (h *Hub) dropPlaces(ctx context.Context, tasks []journal.LogName) error {
	defer h.taskCensus.forget()
	for _, log := range tasks {
		if err := h.drop(ctx, h.tenant.PlaceOfTask(log)); err != nil {
			return err
		}
	}
	return nil
}

// Deleted reports whether an error says that a channel is not there.
func Deleted(err error) bool { return fault.CodeOf(err) == fault.NotFound }

// dropInHome deletes a channel of a home, which has ended. One record marks it as deleted
// and releases its name and its places in lists. What else its logs hold may be too much
// for a batch, and is removed with the logs.
func (h *Hub) dropInHome(ctx context.Context, m *channel.Metadata) error {
	ch, err := h.lock(ctx, m.ID)
	if Deleted(err) {
		return nil // deleted by another call in the meantime
	}
	if err != nil {
		return err
	}
	err = h.recordDeletion(ctx, ch)
	ch.mu.Unlock()
	if err != nil {
		return err
	}
	return h.dropChannelLogs(ctx, m.ID)
}

// recordDeletion stores that a channel is deleted. The channel stays locked until that is
// durable, so that it is not loaded meanwhile.
func (h *Hub) recordDeletion(ctx context.Context, ch *loadedChannel) error {
	m := ch.meta
	home, own := schema.Split(m.ID)
	record := journal.Record{
		Data:   schema.EncodeDeleted(),
		Put:    []journal.IndexPut{{Key: schema.DueKey(schema.DueDrop, h.now(), m.ID)}},
		Remove: [][]byte{schema.Key(schema.IndexChannel, own)},
	}
	for _, p := range m.Participants {
		record.Remove = append(record.Remove, schema.Key(schema.IndexMember, p.Agent, own))
	}
	for k, v := range m.Labels {
		record.Remove = append(record.Remove, schema.Key(schema.IndexLabel, schema.Digest(k, v), own))
	}
	if m.Name != "" {
		record.Release = []string{schema.ChannelNameClaim(home, m.Manifest.Type, m.Name)}
	}
	ticket, err := h.journal.Append(ctx, journal.Batch{Term: ch.term, Appends: []journal.Append{
		{Log: ch.logs.Meta(), Expect: journal.Exactly(ch.heads.meta), Records: []journal.Record{record}},
	}})
	if err != nil {
		return unavailable(err)
	}
	h.channels.drop(ch)
	return unavailable(ticket.Wait(ctx))
}

// dropChannelLogs removes what a deleted channel of a home left: its tasks, its
// cursors, its snapshot and its logs. The metadata, which say that it is deleted, go last.
func (h *Hub) dropChannelLogs(ctx context.Context, channelID string) error {
	logs := h.tenant.Channel(channelID)
	if err := h.dropTasks(ctx, logs); err != nil {
		return err
	}
	if err := journal.RemoveValues(ctx, h.journal, logs.Partition(), logs.CursorsOf()); err != nil {
		return unavailable(err)
	}
	if err := h.journal.DropSnapshot(ctx, savedKey(logs)); err != nil {
		return unavailable(err)
	}
	for _, log := range []journal.LogName{logs.History(), logs.Side(), logs.Meta()} {
		if err := h.drop(ctx, log); err != nil {
			return err
		}
	}
	h.endFollowers(channelID)
	return nil
}

func (h *Hub) drop(ctx context.Context, log journal.LogName) error {
	return h.ledger.Drop(ctx, log)
}

// dropTasks removes the tasks of a channel of a home.
func (h *Hub) dropTasks(ctx context.Context, logs schema.ChannelLogs) error {
	defer h.taskCensus.forget()
	opts := journal.LogsOptions{Family: schema.FamilyTask, After: logs.TasksAfter()}
	for {
		page, err := h.journal.Logs(ctx, logs.Partition(), opts)
		if err != nil {
			return unavailable(err)
		}
		for _, found := range page.Logs {
			if !logs.TaskOf(found.Log) {
				return nil
			}
			for _, log := range []journal.LogName{found.Log, h.tenant.PlaceOfTask(found.Log)} {
				if err := h.drop(ctx, log); err != nil {
					return err
				}
			}
			opts.After = found.Log
		}
		if !page.More {
			return nil
		}
	}
}

// SweepDrops finishes deletions that were begun and interrupted, and returns how
// many that were.
func (h *Hub) SweepDrops(ctx context.Context) int {
	return h.sweepEntries(ctx, schema.DueDrop, schema.DueBy(schema.DueDrop, h.now()), func(entry journal.IndexEntry) error {
		id := schema.LastPart(entry.Key)
		switch {
		case schema.DropsHome(entry):
			return h.finishHome(ctx, id)
		case schema.DropsWhole(entry):
			return h.finishWhole(ctx, id)
		}
		return h.dropChannelLogs(ctx, id)
	})
}

// deletingParts is how many parts of a channel are deleted at once, so that they
// share the disk's syncs.
const deletingParts = 16

// hasParts reports whether other channels can be part of one.
func (h *Hub) hasParts(m *channel.Metadata) bool {
	if m.Name == "" || HomeOf(m.ID) == "" {
		return false
	}
	h.adaptersMu.RLock()
	defer h.adaptersMu.RUnlock()
	for _, a := range h.adapters {
		if part, ok := a.(channel.Part); ok && part.WholeType() == m.Manifest.Type {
			return true
		}
	}
	return false
}

// isPart reports whether a channel is part of another of its home.
func (h *Hub) isPart(m, whole *channel.Metadata) bool {
	part, ok := h.adapterOf(m.Manifest.Key()).(channel.Part)
	return ok && part.WholeType() == whole.Manifest.Type && part.WholeName(m) == whole.Name
}

// checkWhole refuses to open a part of a channel that is not there or has ended.
// The new channel is locked meanwhile: see awaitParts.
func (h *Hub) checkWhole(ctx context.Context, a channel.Adapter, m *channel.Metadata) error {
	part, ok := a.(channel.Part)
	if !ok {
		return nil
	}
	kind, name := part.WholeType(), part.WholeName(m)
	id, err := h.Named(ctx, HomeOf(m.ID), kind, name)
	if err != nil {
		return err
	}
	whole, err := h.durableMeta(ctx, id)
	if err != nil {
		return err
	}
	if whole.State.Terminal() {
		return fault.New(fault.NotFound, "the %s %.100q has ended (%s), and nothing is opened in it", kind, name, whole.CloseReason).Because(fault.NoChannel)
	}
	return nil
}

// deleteWhole deletes a channel and the channels that are part of it. The channel
// ends first, so that no new part is opened. It exists until the last part is gone,
// so that a channel that is opened again under its name never meets old parts. The
// batch that ends it begins the deletion: one that is interrupted is finished by a
// sweep or by the next hub that opens.
func (h *Hub) deleteWhole(ctx context.Context, m *channel.Metadata, by *Caller) error {
	if err := h.auditDeletion(ctx, m, by); err != nil {
		return err
	}
	begin := func(b *batch) error {
		b.sideNote(schema.SideRecord{Kind: schema.SideScheduled}, func(r *journal.Record) {
			r.Put = append(r.Put, schema.DropWhole(b.ch.id, b.now))
		})
		return nil
	}
	_, err := h.endChannel(ctx, m.ID, func(b *batch) error {
		b.by = by
		return errors.Join(b.end(channel.Closed, "deleted"), begin(b))
	})
	if err != nil {
		return fault.IgnoreNotFound(err)
	}
	h.awaitParts(HomeOf(m.ID))
	// When this batch is durable, everything ordered before it is durable too,
	// including the last parts.
	p, err := h.writeBatch(ctx, m.ID, begin)
	if err == nil && p != nil {
		_, err = p.Wait(ctx)
	}
	if err != nil {
		return fault.IgnoreNotFound(err)
	}
	return h.finishWhole(ctx, m.ID)
}

// awaitParts waits until the channels of a home that are being opened are ordered. Later
// openings see what is durable now.
func (h *Hub) awaitParts(home string) {
	for _, ch := range h.channels.list() {
		if HomeOf(ch.id) == home {
			ch.mu.Lock()
			ch.mu.Unlock() //nolint:staticcheck // it waits for whoever has the lock
		}
	}
}

// finishWhole deletes the parts of a channel that has ended, and then the channel.
func (h *Hub) finishWhole(ctx context.Context, id string) error {
	m, err := h.Channel(ctx, id)
	if Deleted(err) {
		return h.dropChannelLogs(ctx, id)
	}
	if err != nil {
		return err
	}
	if err := h.deleteParts(ctx, m); err != nil {
		return err
	}
	if err := h.dropInHome(ctx, m); err != nil {
		return err
	}
	h.tellDeleted(m)
	return nil
}

// deleteParts deletes what is part of a channel, page after page of the channels
// of its home.
func (h *Hub) deleteParts(ctx context.Context, whole *channel.Metadata) error {
	opts := journal.LogsOptions{Family: schema.FamilyMeta}
	for {
		page, err := h.journal.Logs(ctx, h.tenant.Home(HomeOf(whole.ID)), opts)
		if err != nil {
			return unavailable(err)
		}
		var (
			group  sync.WaitGroup
			places = make(chan struct{}, deletingParts)
			failed = make([]error, len(page.Logs))
		)
		for i, found := range page.Logs {
			opts.After = found.Log
			if id, ok := schema.ChannelOf(found.Log); ok && id != whole.ID {
				places <- struct{}{}
				group.Go(func() {
					defer func() { <-places }()
					failed[i] = fault.IgnoreNotFound(h.deletePart(ctx, id, whole))
				})
			}
		}
		group.Wait()
		if err := errors.Join(failed...); err != nil || !page.More {
			return err
		}
	}
}

// deletePart deletes a channel if it is part of another.
func (h *Hub) deletePart(ctx context.Context, id string, whole *channel.Metadata) error {
	m, err := h.Channel(ctx, id)
	if err != nil || !h.isPart(m, whole) {
		return err
	}
	if !m.State.Terminal() {
		if _, err := h.closeChannel(ctx, id, "deleted", nil); err != nil {
			return err
		}
	}
	if err := h.dropInHome(ctx, m); err != nil {
		return err
	}
	h.tellDeleted(m)
	return nil
}
