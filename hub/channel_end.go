package hub

import (
	"cmp"
	"context"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// CloseChannel ends a channel. One that has ended stays as it is: the first
// reason wins.
func (h *Hub) CloseChannel(ctx context.Context, id, reason string) (*channel.Metadata, error) {
	return h.closeChannel(ctx, id, reason, nil)
}

// closeChannel is CloseChannel with who asks for it, for the audit.
func (h *Hub) closeChannel(ctx context.Context, id, reason string, by *Caller) (*channel.Metadata, error) {
	if err := h.boundRecord("reason", len(reason)); err != nil {
		return nil, err
	}
	return h.endChannel(ctx, id, func(b *batch) error {
		b.by = by
		return b.end(channel.Closed, cmp.Or(reason, "explicit_close"))
	})
}

// endChannel runs an ending on a channel that has not ended, and returns the
// metadata once it is durable.
func (h *Hub) endChannel(ctx context.Context, id string, end func(b *batch) error) (*channel.Metadata, error) {
	if err := h.delivery.await(ctx); err != nil {
		return nil, err
	}
	for {
		ch, err := h.lock(ctx, id)
		if err != nil {
			return nil, err
		}
		if ch.meta.State.Terminal() {
			ch.mu.Unlock()
			return h.Channel(ctx, id)
		}
		if ch.adapter == nil || ch.state == nil {
			// It can still be ended, because its state no longer matters.
			ch.adapter, ch.state = inert{}, struct{}{}
		}
		b := h.newBatch(ch)
		p, err := b.fill(ctx, end)
		if retryFold(err) {
			h.abandon(ch)
			continue
		}
		m := b.meta
		if err != nil && ch.adapter == channel.Adapter(inert{}) {
			h.channels.drop(ch)
		}
		ch.mu.Unlock()
		if err != nil {
			return nil, unavailable(err)
		}
		_, err = p.Wait(ctx)
		return m, err
	}
}

// end puts the end of a channel into the batch: its tasks, the envelopes that
// say so, the metadata, the audit.
func (b *batch) end(state channel.Lifecycle, reason string) error {
	if err := b.endTasks(); err != nil {
		return err
	}
	wasPending := b.meta.State == channel.Pending
	reason = b.hub.shared.Name(reason)
	b.change(func(m *channel.Metadata) {
		m.State, m.CloseReason, m.ClosedAt = state, reason, b.now
	})
	if b.ch.adapter.Opening() == channel.ByInvitation {
		if err := b.farewell(state, reason); err != nil {
			return err
		}
	}
	kind := "channel_closed"
	if state == channel.Expired {
		kind = "channel_expired"
	}
	f := fields{"channel_id": b.ch.id, "reason": reason}
	if state == channel.Closed {
		b.by.describe(f)
	}
	if err := b.audit(kind, f); err != nil {
		return err
	}
	b.note(state.String(), b.meta, reason, "")
	b.sideNote(schema.SideRecord{Kind: schema.SideEnded}, func(r *journal.Record) {
		if !b.meta.ExpiresAt.IsZero() {
			r.Remove = append(r.Remove, schema.DueKey(schema.DueTTL, b.meta.ExpiresAt, b.ch.id))
		}
		if wasPending {
			r.Remove = append(r.Remove, schema.DueKey(schema.DueInvite, b.inviteDue(), b.ch.id))
		}
		r.Remove = append(append(r.Remove, b.dropDeadlines()...), b.activeKey()...)
	})
	h, ch, readers := b.hub, b.ch, b.meta.IDs()
	if err := b.cancelOpen("the channel has ended", ""); err != nil {
		return err
	}
	over := errOver(b.meta)
	failed := b.refusal
	if failed == nil {
		failed = openingFailed(b.meta)
	}
	b.after = append(b.after, func() {
		if wasPending {
			h.openings.finish(ch.id, failed)
		}
		h.refuseWaiting(ch, over)
		for _, id := range readers {
			if m := h.registry.ByID(id); m != nil {
				m.Places.Ended(ch.id)
			}
		}
	})
	_, own := schema.Split(b.ch.id)
	unindex := [][]byte{schema.Key(schema.IndexOwned, b.meta.Creator, own), schema.Key(schema.IndexOpen, own)}
	for _, p := range b.meta.Participants {
		unindex = append(unindex, schema.Key(schema.IndexTurn, p.Agent, own))
	}
	return b.recordChange(unindex)
}

// farewell writes the envelopes that end the log: closed, preceded by expired if
// the channel's time ran out.
func (b *batch) farewell(state channel.Lifecycle, reason string) error {
	data, err := channelData(b.ch.id, reason)
	if err != nil {
		return err
	}
	if state == channel.Expired {
		if err := b.hubEnvelope(envelope.TypeExpired, data, b.meta.IDs()); err != nil {
			return err
		}
	}
	return b.hubEnvelope(envelope.TypeClosed, data, b.meta.IDs())
}

// note tells listeners of the channel's life once it is durable.
func (b *batch) note(kind string, m *channel.Metadata, reason, agent string) {
	ev := ChannelEvent{Channel: b.ch.id, Kind: kind, Metadata: m, Reason: reason, Agent: agent, At: b.now}
	h := b.hub
	tell := func() {
		h.census.note(kind, m.Manifest.Key())
		h.hooks.each(func(l Listener) { l.ChannelEvent(ev) })
	}
	if kind == "created" || kind == "opened" {
		b.before = append(b.before, tell)
	} else {
		b.after = append(b.after, tell)
	}
}

// inert stands in for an adapter that is not loaded, so that its channel can
// be ended.
type inert struct{ channel.Adapter }

func (inert) Opening() channel.Opening                                 { return channel.AtOnce }
func (inert) Fold(s channel.State, _ *envelope.Envelope) channel.State { return s }
func (inert) Expected(*channel.Metadata, channel.State) (channel.Turn, bool) {
	return channel.Turn{}, false
}

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
func (h *Hub) SweepDrops(ctx context.Context) int {
	return h.sweepEntries(ctx, schema.DueDrop, schema.DueBy(schema.DueDrop, h.now()), func(entry journal.IndexEntry) error {
		id := schema.LastPart(entry.Key)
		if schema.DropsHome(entry) {
			return h.finishHome(ctx, id)
		}
		return h.dropChannelLogs(ctx, id)
	})
}
