package hub

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/feed"
	"github.com/parley-hub/parley/hub/internal/ledger"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// AuditLine is one record of the audit.
type AuditLine = ledger.AuditLine

// AuditQuery selects records; its zero fields select everything.
type AuditQuery = ledger.AuditQuery

// AuditSink receives each record after it is stored, from several goroutines and in an
// order that may differ from that of the ids. It must return soon; its errors are logged.
type AuditSink = ledger.AuditSink

// fields are what an audit record says besides its time and kind.
type fields = ledger.Fields

// auditRecord makes one line of the audit log.
func (h *Hub) auditRecord(kind string, f fields) (journal.Record, error) {
	return h.ledger.AuditRecord(kind, f)
}

// AddAuditSink adds a sink that receives every record from now on, until remove is
// called. The journal's audit is not affected.
func (h *Hub) AddAuditSink(sink AuditSink) (remove func()) { return h.ledger.AddSink(sink) }

// AuditLog returns a page of the audit. It reads a bounded number of records: with narrow
// filters a page may be short, or empty. Next continues after it, and is empty at the end.
// If the clock was set back, records are out of order: a range of time is then read up to
// the first record beyond it.
func (h *Hub) AuditLog(ctx context.Context, q AuditQuery) (page []AuditLine, next string, err error) {
	return h.ledger.AuditLog(ctx, q)
}

// AuditTotal counts the records that a query selects.
func (h *Hub) AuditTotal(ctx context.Context, q AuditQuery) (Total, error) {
	return h.ledger.AuditTotal(ctx, q)
}

// Audit writes a record of a caller's own kind. Its fields must encode as JSON; the time
// and the kind are set here.
func (h *Hub) Audit(ctx context.Context, kind string, record map[string]any) error {
	if kind == "" {
		return fault.New(fault.Invalid, "an audit record has a kind; any non-empty text is accepted")
	}
	return h.ledger.AuditIn(ctx, h.tenant.Directory(), kind, record)
}

// auditPlace returns the partition for an audit record about a channel: the
// channel's own, or the directory if there is no such channel.
func (h *Hub) auditPlace(ctx context.Context, channelID string) (journal.PartitionName, error) {
	if !channel.ValidID(channelID) {
		return h.tenant.Directory(), nil
	}
	if _, err := h.Channel(ctx, channelID); err != nil {
		if fault.CodeOf(err) == fault.NotFound {
			return h.tenant.Directory(), nil
		}
		return h.tenant.Directory(), err
	}
	return h.tenant.Channel(channelID).Partition(), nil
}

// ReportTurnFailure audits that an agent could not finish a turn. It does not check
// the ids.
func (h *Hub) ReportTurnFailure(ctx context.Context, channelID, agent, envelopeID, kind, message string) error {
	place, err := h.auditPlace(ctx, channelID)
	if err != nil {
		return err
	}
	err = h.ledger.AuditIn(ctx, place, "turn_failed", fields{
		"channel_id": channelID, "agent_id": agent, "envelope_id": envelopeID,
		"exc_type": kind, "exc_message": message,
	})
	if err != nil {
		return err
	}
	h.stats.turnsFailed.Add(1)
	h.spans.ChannelError(channelID, "turn_failed", kind, message)
	h.hooks.each(func(l Listener) { l.TurnFailed(channelID, agent, envelopeID, message) })
	return nil
}

// gapOf gives the journal's error for a position that is gone the code of a gap.
func gapOf(err error) error {
	if _, ok := errors.AsType[*journal.GapError](err); ok {
		return fault.Wrap(fault.Gap, err, "%v", err)
	}
	return unavailable(err)
}

// AuditHead is where the audit ends now.
func (h *Hub) AuditHead(ctx context.Context) (journal.StorePosition, error) {
	return feed.End(ctx, h.journal)
}

// AuditEntry is a record as a follower meets it.
type AuditEntry struct {
	AuditLine
	// Position to resume after, once the entry is handled.
	Position journal.StorePosition
}

// FollowAudit yields every record after a position as it becomes durable, in
// that order, until the context ends. Its last error says why it ended; a
// position that is gone is a gap. The zero position is before everything.
func (h *Hub) FollowAudit(ctx context.Context, after journal.StorePosition) iter.Seq2[AuditEntry, error] {
	return func(yield func(AuditEntry, error) bool) {
		shards, err := feed.Follow(ctx, h.journal, after)
		if err != nil {
			yield(AuditEntry{}, gapOf(err))
			return
		}
		defer shards.Close()
		at := make(journal.StorePosition, h.journal.Shards())
		copy(at, after)
		for {
			shard, commits, err := shards.Next(ctx)
			if err != nil {
				yield(AuditEntry{}, gapOf(err))
				return
			}
			for _, commit := range commits {
				if !h.yieldAudit(shard, commit, at, yield) {
					return
				}
			}
		}
	}
}

// yieldAudit yields the audit records of one batch. All but the last have the
// position of the batch before, so that a reader resumes at a whole batch.
func (h *Hub) yieldAudit(shard int, commit journal.Commit, at journal.StorePosition, yield func(AuditEntry, error) bool) bool {
	var entries []journal.Entry
	for _, write := range commit.Writes {
		if write.Log.Family == schema.FamilyAudit {
			entries = append(entries, write.Entries...)
		}
	}
	for i, entry := range entries {
		line, err := ledger.DecodeAudit("", entry.Data)
		if err != nil {
			h.log.Error("audit record cannot be read", "offset", entry.Offset, "error", err)
			continue
		}
		if i == len(entries)-1 {
			at[shard] = commit.Position
		}
		if !yield(AuditEntry{AuditLine: line, Position: slices.Clone(at)}, nil) {
			return false
		}
	}
	at[shard] = commit.Position
	return true
}
