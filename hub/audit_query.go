package hub

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// AuditQuery selects records; its zero fields select everything.
type AuditQuery struct {
	From    time.Time // at or after
	Until   time.Time // before
	Kind    string
	Channel string
	Agent   string // whom it concerns, in whatever part
	After   string // the last id of the page before
	Limit   int    // 0: 100
	Newest  bool   // the newest first
}

// AuditLog returns a page of the audit. Next goes on after it, and is empty at
// the end. A clock that was set back leaves records out of order: a range of
// time is then followed to the first record beyond it.
func (h *Hub) AuditLog(ctx context.Context, q AuditQuery) (page []AuditLine, next string, err error) {
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	q.From, q.Until = q.From.Truncate(time.Microsecond), q.Until.Truncate(time.Microsecond) // as records tell it
	for entry, err := range journal.IndexAll(ctx, h.journal, q.scan()) {
		if err != nil {
			return nil, "", unavailable(err)
		}
		line, err := auditLine(schema.LastPart(entry.Key), entry.Value)
		if err != nil {
			return nil, "", fault.Wrap(fault.Internal, err, "%v", err)
		}
		if q.past(line) {
			return page, "", nil
		}
		if !q.Matches(line) {
			continue
		}
		if len(page) == limit {
			return page, page[limit-1].ID, nil
		}
		page = append(page, line)
	}
	return page, "", nil
}

// scan returns the part of the index that can match. An id begins with its time,
// or a later one.
func (q *AuditQuery) scan() journal.ScanOptions {
	scan := journal.ScanOptions{Prefix: []byte(schema.IndexAudit), Backward: q.Newest}
	if !q.From.IsZero() {
		scan.From = schema.Key(schema.IndexAudit, fmt.Sprintf("%016x", max(q.From.UnixNano(), 0)))
	}
	if q.After == "" {
		return scan
	}
	after := schema.Key(schema.IndexAudit, q.After)
	if q.Newest {
		scan.To = after
	} else if after = append(after, 0); string(after) > string(scan.From) {
		scan.From = after
	}
	return scan
}

// past reports whether no later record can match.
func (q *AuditQuery) past(line AuditLine) bool {
	return !q.Newest && !q.Until.IsZero() && !line.At.Before(q.Until)
}

// Matches reports whether the query selects a record, whatever its position.
func (q *AuditQuery) Matches(line AuditLine) bool {
	if q.Kind != "" && line.Kind != q.Kind || line.At.Before(q.From) || !q.Until.IsZero() && !line.At.Before(q.Until) {
		return false
	}
	if q.Channel == "" && q.Agent == "" {
		return true
	}
	var names struct {
		Channel      string   `json:"channel_id"`
		Agent        string   `json:"agent_id"`
		Owner        string   `json:"owner_id"`
		Creator      string   `json:"creator_id"`
		Participants []string `json:"participants"`
		Violators    []string `json:"violators"`
	}
	if err := json.Unmarshal(line.Data, &names); err != nil {
		return false // a custom record that uses a name for something else
	}
	if q.Channel != "" && names.Channel != q.Channel {
		return false
	}
	return q.Agent == "" || slices.Contains([]string{names.Agent, names.Owner, names.Creator}, q.Agent) ||
		slices.Contains(names.Participants, q.Agent) || slices.Contains(names.Violators, q.Agent)
}

// AuditHead is where the audit ends now.
func (h *Hub) AuditHead(ctx context.Context) (journal.StorePosition, error) {
	return h.storePosition(ctx)
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
		feed, err := h.feed(ctx, after)
		if err != nil {
			yield(AuditEntry{}, gapOf(err))
			return
		}
		defer feed.Close()
		at := make(journal.StorePosition, h.journal.Shards())
		copy(at, after)
		for {
			shard, commits, err := feed.next(ctx)
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
		line, err := auditLine("", entry.Data)
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
