package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
)

type auditPage struct {
	Records []jsontext.Value `json:"records"`
	Next    string           `json:"next"` // empty at the end
	Prev    string           `json:"prev"` // empty at the beginning
	// Position is where a stream begins that continues this page.
	Position string `json:"position"`
	listTotal
}

func (a *API) audit(c *call) error {
	if !c.who.seesAll() {
		return fault.New(fault.AccessDenied, "the audit takes a key of role operator or reader").Because(fault.NeedsRole)
	}
	follow, err := c.wantsStream()
	if err != nil {
		return err
	}
	q, err := a.auditQuery(c)
	if err != nil {
		return err
	}
	limit, err := c.limit(a.cfg.Limits)
	if err != nil {
		return err
	}
	if follow {
		return a.followAudit(c, q)
	}
	if q.Newest, err = c.flag("newest"); err != nil {
		return err
	}
	head, err := a.hub.AuditHead(c.Context())
	if err != nil {
		return err
	}
	page := auditPage{Position: head.String()}
	place := func(line hub.AuditLine) string { return line.ID }
	page.Records, page.Prev, page.Next, err = bothWays(c, limit, envelope.ValidID, place, func(n int, after string, backward bool) ([]hub.AuditLine, string, error) {
		q := q
		q.Limit, q.After, q.Newest = n, after, q.Newest != backward
		return a.hub.AuditLog(c.Context(), q)
	}, counted(c, func(line hub.AuditLine) ([]byte, error) { return line.Data, nil }))
	if err != nil {
		return err
	}
	if page.listTotal, err = c.total(func() (hub.Total, error) { return a.hub.AuditTotal(c.Context(), q) }); err != nil {
		return err
	}
	return c.write(http.StatusOK, page)
}

func (a *API) auditQuery(c *call) (hub.AuditQuery, error) {
	params := c.URL.Query()
	q := hub.AuditQuery{Channel: params.Get("channel")}
	for _, kind := range params["kind"] {
		if kind != "" {
			q.Kinds = append(q.Kinds, kind)
		}
	}
	var err error
	if q.Agent, err = a.agentParam(c, "agent"); err != nil {
		return q, err
	}
	for name, at := range map[string]*time.Time{"since": &q.From, "until": &q.Until} {
		if text := params.Get(name); text != "" {
			if *at, err = envelope.ParseTime(text); err != nil {
				return q, fault.Wrap(fault.Invalid, err, "%s=%q is not a time; write it like 2026-03-09T10:15:42Z", name, text)
			}
		}
	}
	return q, nil
}

// followAudit streams records as they become durable.
func (a *API) followAudit(c *call, q hub.AuditQuery) error {
	var after journal.StorePosition
	var err error
	if text := c.resume(); text != "" {
		if after, err = journal.ParseStorePosition(text); err != nil {
			return fault.Wrap(fault.Invalid, err, "%v", err)
		}
	}
	s, ctx, done, err := a.stream(c)
	if err != nil {
		return err
	}
	defer done()
	for {
		err := a.streamAudit(ctx, s, q, after)
		var gap *journal.GapError
		if !errors.As(err, &gap) {
			return nil // the answer has begun, so an error cannot be sent
		}
		if after = (journal.StorePosition{gap.HeadShard}); a.hub.Shards() > 1 {
			if after, err = a.hub.AuditHead(ctx); err != nil {
				return nil
			}
		}
		if s.json(after.String(), "gap", gapBody{Reason: gap.Reason.String(), Head: after.String()}) != nil {
			return nil
		}
	}
}

// streamAudit streams the records after a position until the stream ends.
func (a *API) streamAudit(ctx context.Context, s stream, q hub.AuditQuery, after journal.StorePosition) error {
	feed := startFeed(ctx, func(ctx context.Context, put func(hub.AuditEntry) bool) error {
		for entry, err := range a.hub.FollowAudit(ctx, after) {
			if err != nil {
				return err
			}
			if q.Matches(entry.AuditLine) && !put(entry) {
				return nil
			}
		}
		return nil
	}, func(entry hub.AuditEntry) int { return len(entry.Data) })
	defer feed.stop()
	return s.Run(ctx, func() (<-chan struct{}, error) {
		entry, wake, err := feed.tryNext()
		if err != nil || wake != nil {
			return wake, err
		}
		s.Event(entry.Position.String(), "audit", entry.Data)
		return nil, nil
	})
}
