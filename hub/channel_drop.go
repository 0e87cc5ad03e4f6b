package hub

import (
	"context"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

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
