package hub

import (
	"context"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/journal"
)

// Delete removes a channel with everything in its partition. Its audit stays,
// and the deletion is written to the directory first.
func (h *Hub) Delete(ctx context.Context, channelID, by string) error {
	m, err := h.Channel(ctx, channelID)
	if err != nil {
		return err
	}
	if !m.State.Terminal() {
		if _, err := h.CloseChannel(ctx, channelID, "deleted"); err != nil {
			return err
		}
	}
	record, err := h.auditRecord("channel_deleted", fields{
		"channel_id": channelID, "manifest_type": m.Manifest.Type, "creator_id": m.Creator, "by": by,
	})
	if err != nil {
		return err
	}
	err = h.commit(ctx, journal.Batch{Appends: []journal.Append{
		{Log: directory.In(familyAudit, only), Records: []journal.Record{record}},
	}})
	if err != nil {
		return err
	}
	ticket, err := h.journal.DropPartition(ctx, channelPartition(channelID), familyAudit)
	if err != nil {
		return unavailable(err)
	}
	if err := ticket.Wait(ctx); err != nil {
		return unavailable(err)
	}
	if ch := h.channels.get(channelID); ch != nil {
		ch.mu.Lock()
		h.channels.drop(ch)
		ch.mu.Unlock()
	}
	for _, s := range h.followers(channelID) {
		s.close(&Gap{Reason: "the log was dropped"})
	}
	return nil
}

// Deleted reports whether an error says that a channel is not there.
func Deleted(err error) bool { return fault.CodeOf(err) == fault.NotFound }
