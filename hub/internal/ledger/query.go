package ledger

import (
	"context"
	"fmt"
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
	Kinds   []string // only of one of these; none is any
	Channel string
	Agent   string // an identity that the record concerns, in any role
	After   string // the last id of the page before
	Limit   int    // 0: 100
	Newest  bool   // the newest first
}

// AuditLog returns a page of the audit. It reads a bounded number of records, so a
// page of a narrow selection may be short, or empty. Next is the After of the next
// page, and is empty at the end. A clock that was set back leaves records out of
// order: a range of time then ends at the first record beyond it.
func (l *Ledger) AuditLog(ctx context.Context, q AuditQuery) (page []AuditLine, next string, err error) {
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	last, ended, err := l.each(ctx, q, func(line AuditLine) bool {
		if len(page) == limit {
			return false
		}
		page = append(page, line)
		return true
	})
	switch {
	case err != nil:
		return nil, "", err
	case ended:
		return page, "", nil
	}
	return page, last, nil
}

// AuditTotal counts the records that a query selects. It reads a bounded number of
// records.
func (l *Ledger) AuditTotal(ctx context.Context, q AuditQuery) (t schema.Total, err error) {
	q.After = ""
	_, t.Exact, err = l.each(ctx, q, func(AuditLine) bool { return t.Add() })
	return t, err
}

// each calls visit for the records that a query selects until visit returns false
// or schema.MaxScanned records were read. Last is the id of the last record that
// was processed; ended is true if there are no more.
func (l *Ledger) each(ctx context.Context, q AuditQuery, visit func(line AuditLine) bool) (last string, ended bool, err error) {
	q.From, q.Until = q.From.Truncate(time.Microsecond), q.Until.Truncate(time.Microsecond) // the precision of records
	scanned := 0
	for entry, err := range journal.IndexAll(ctx, l.Journal, q.scan()) {
		if err != nil {
			return "", false, Unavailable(err)
		}
		if scanned++; scanned > schema.MaxScanned {
			return last, false, nil
		}
		line, err := DecodeAudit(schema.LastPart(entry.Key), entry.Value)
		if err != nil {
			return "", false, fault.Wrap(fault.Internal, err, "%v", err)
		}
		if q.past(line) {
			return last, true, nil
		}
		if q.Matches(line) && !visit(line) {
			return last, false, nil
		}
		last = line.ID
	}
	return last, true, nil
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
	if q.Kind != "" && line.Kind != q.Kind || q.Kinds != nil && !slices.Contains(q.Kinds, line.Kind) || line.At.Before(q.From) || !q.Until.IsZero() && !line.At.Before(q.Until) {
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
