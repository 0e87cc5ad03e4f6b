package hub

import (
	"context"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Delete removes a channel with everything that belongs to it. Its audit stays,
// and the deletion is written to the directory first.
func (h *Hub) Delete(ctx context.Context, channelID string, by *Caller) error {
	m, err := h.Channel(ctx, channelID)
	if err != nil {
		return err
	}
	if !m.State.Terminal() {
		if _, err := h.closeChannel(ctx, channelID, "deleted", by); err != nil {
			return err
		}
	}
	f := fields{"channel_id": channelID, "manifest_type": m.Manifest.Type, "creator_id": m.Creator}
	by.describe(f)
	record, err := h.auditRecord("channel_deleted", f)
	if err != nil {
		return err
	}
	err = h.commit(ctx, journal.Batch{Appends: []journal.Append{
		{Log: h.tenant.Audit(), Records: []journal.Record{record}},
	}})
	if err != nil {
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
	h.endFollowers(channelID)
	ev := ChannelEvent{Channel: channelID, Kind: "deleted", Metadata: m, At: h.now()}
	h.hooks.each(func(l Listener) { l.ChannelEvent(ev) })
	return nil
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

// dropPlaces gives up the ids of tasks that are gone. One that is left after a
// crash is free all the same, because its channel is gone.
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

// dropInHome deletes a channel of a home, which has ended. One record says so and
// gives up its name and its places in lists; what else its logs hold, which may
// fit no batch, goes with the logs.
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

// recordDeletion stores that a channel is deleted. The channel stays locked until
// that is durable, so that nobody loads it meanwhile.
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
func (h *Hub) SweepDrops(ctx context.Context) (n int) {
	for entry, err := range journal.IndexAll(ctx, h.journal, schema.DueBy(schema.DueDrop, h.now())) {
		if err != nil {
			h.log.Error("sweep failed", "kind", schema.DueDrop, "error", err)
			return n
		}
		id := schema.LastPart(entry.Key)
		if schema.DropsHome(entry) {
			err = h.finishHome(ctx, id)
		} else {
			err = h.dropChannelLogs(ctx, id)
		}
		if err != nil {
			h.log.Error("sweep could not act", "kind", schema.DueDrop, "id", id, "error", err)
			continue
		}
		n++
	}
	return n
}
