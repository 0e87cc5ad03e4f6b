package hub

import (
	"context"

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
	for _, log := range tasks {
		if err := h.drop(ctx, h.tenant.PlaceOfTask(log)); err != nil {
			return err
		}
	}
	return nil
}

// Deleted reports whether an error says that a channel is not there.
func Deleted(err error) bool { return fault.CodeOf(err) == fault.NotFound }
