package hub

import (
	"cmp"
	"context"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/imported"
	"github.com/parley-hub/parley/hub/internal/marks"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/request"
)

// Request returns a request as it is durable.
func (h *Hub) Request(ctx context.Context, id string) (Request, error) {
	row, err := h.requestRow(ctx, id)
	if err != nil {
		return Request{}, err
	}
	r, err := h.readRow(ctx, id, row)
	if err != nil {
		return Request{}, err
	}
	r.Similar, err = h.similar(ctx, r)
	return *r, err
}

func (h *Hub) requestRow(ctx context.Context, id string) (schema.RequestRow, error) {
	if !envelope.ValidID(id) {
		return schema.RequestRow{}, errNoRequest(id)
	}
	page, err := journal.ScanAll(ctx, h.journal, journal.ScanOptions{
		Prefix: schema.RequestKey(schema.RequestsAsked, schema.AnyState, time.Time{}, id), Limits: journal.Limits{Entries: 1},
	})
	if err != nil {
		return schema.RequestRow{}, unavailable(err)
	}
	if len(page.Entries) == 0 {
		return schema.RequestRow{}, errNoRequest(id)
	}
	row, err := schema.DecodeRequestRow(page.Entries[0].Value)
	if err != nil {
		err = fault.Wrap(fault.Internal, err, "request '%s' cannot be read: %v", id, err)
	}
	return row, err
}

// readRow reads a request's records.
func (h *Hub) readRow(ctx context.Context, id string, row schema.RequestRow) (*Request, error) {
	log := h.tenant.Channel(row.Channel).Side()
	record, err := h.readSide(ctx, log, row.Asked)
	if err != nil {
		return nil, err
	}
	r, err := marks.ReadRequest(record)
	if err != nil || row.Ended == 0 {
		return r, err
	}
	if record, err = h.readSide(ctx, log, row.Ended); err != nil {
		return nil, err
	}
	e, err := envelope.Unmarshal(record.Envelope)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "%v", err)
	}
	end, err := request.DecodeEnd(e.Data)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the end of request '%s' cannot be read: %v", id, err)
	}
	over := r.After(end)
	over.EndedAt = e.CreatedAt
	return over, nil
}

// similarity is the digest under which requests count as similar.
func similarity(r *Request) string {
	what := r.Title
	if r.Action != nil {
		what = r.Action.Name
	}
	return schema.Digest(r.Kind, r.AskedBy, what)
}

// maxSimilar is how many earlier decisions are counted, the newest first.
const maxSimilar = 100

// similar counts how the same was decided before.
func (h *Hub) similar(ctx context.Context, r *Request) (*request.Similar, error) {
	page, err := journal.ScanAll(ctx, h.journal, journal.ScanOptions{
		Prefix: schema.Key(schema.IndexRequestSimilar, similarity(r), ""), Backward: true, Limits: journal.Limits{Entries: maxSimilar},
	})
	if err != nil {
		return nil, unavailable(err)
	}
	found := &request.Similar{}
	for _, entry := range page.Entries {
		row, err := schema.DecodeRequestRow(entry.Value)
		if err != nil || schema.LastPart(entry.Key) == r.ID {
			continue
		}
		if row.Approved {
			found.Approved++
		} else {
			found.Denied++
		}
		if at := time.Unix(0, row.At).UTC(); at.After(found.Last) {
			found.Last = at
		}
	}
	if found.Approved+found.Denied == 0 {
		return nil, nil
	}
	return found, nil
}

// RequestQuery selects requests. Empty fields select all.
type RequestQuery struct {
	State   request.State
	Kind    string
	Channel string
	For     string
	AskedBy string
	As      string // only what this agent may see
	ByDue   bool   // the first due first; else in the order of asking
	Newest  bool   // backward
	After   string // the request before the page
	Before  string // the request behind it
	Limit   int    // 0: 50
}

// RequestPage is a part of the requests that were selected.
type RequestPage struct {
	Requests []Request
	Next     string // the After of the next page; empty: there is none
	// Position is where FollowRequests goes on from this page.
	Position WidePosition
}

// maxScanned bounds how many entries one page looks at. A page of a narrow
// selection may thus be short, and Next go on.
const maxScanned = schema.MaxScanned

// Requests lists the requests that a query selects.
func (h *Hub) Requests(ctx context.Context, q RequestQuery) (RequestPage, error) {
	var page RequestPage
	var err error
	if page.Position, err = h.Now(ctx); err != nil {
		return page, err
	}
	if m, err := h.importedChannel(ctx, q.Channel); err != nil || m != nil {
		if err == nil {
			err = h.importedRequests(ctx, m, q, &page)
		}
		return page, err
	}
	scan, err := h.requestScan(ctx, q)
	if err != nil {
		return page, err
	}
	limit, scanned := cmp.Or(q.Limit, 50), 0
	last := ""
	for entry, err := range journal.IndexAll(ctx, h.journal, scan) {
		if err != nil {
			return page, unavailable(err)
		}
		if len(page.Requests) == limit || scanned == maxScanned {
			page.Next = last
			return page, nil
		}
		scanned++
		id := schema.LastPart(entry.Key)
		row, err := schema.DecodeRequestRow(entry.Value)
		if err != nil {
			return page, fault.Wrap(fault.Internal, err, "request '%s' cannot be read: %v", id, err)
		}
		last = id
		if !q.selects(row) {
			continue
		}
		if shown, err := h.showsRequest(ctx, row.Channel, row.AskedBy, row.For, q.As); err != nil || !shown {
			if err != nil {
				return page, err
			}
			continue
		}
		r, err := h.readRow(ctx, id, row)
		if Deleted(err) {
			continue // with its channel, just now
		}
		if err != nil {
			return page, err
		}
		if r.State == request.Open {
			if r.Similar, err = h.similar(ctx, r); err != nil {
				return page, err
			}
		}
		page.Requests = append(page.Requests, *r)
	}
	return page, nil
}

// importedChannel is the channel of a query if it was imported, else nil.
func (h *Hub) importedChannel(ctx context.Context, id string) (*channel.Metadata, error) {
	if id == "" {
		return nil, nil
	}
	m, err := h.durableMeta(ctx, id)
	if err != nil || !m.State.Terminal() || m.Labels[LabelImported] == "" {
		return nil, fault.IgnoreNotFound(err)
	}
	return m, nil
}

// importedRequests lists the requests that an import brought, in the order of asking.
// They are read off the side log: their ids are those of the originals, which this hub
// may have too, so no index holds them.
func (h *Hub) importedRequests(ctx context.Context, m *channel.Metadata, q RequestQuery, page *RequestPage) error {
	rows, more, err := h.importedRows(ctx, m.ID, q)
	if err != nil {
		return err
	}
	limit, last := cmp.Or(q.Limit, 50), ""
	for n := range rows {
		row := rows[n]
		if q.Newest {
			row = rows[len(rows)-1-n]
		}
		if len(page.Requests) == limit {
			more = true
			break
		}
		last = row.ID
		r, err := h.readRow(ctx, row.ID, schema.RequestRow{Channel: m.ID, Asked: row.Asked, Ended: row.Ended})
		if fault.CodeOf(err) == fault.Internal {
			continue // a bundle may hold anything
		}
		if err != nil {
			return err
		}
		r.ID, r.Channel = row.ID, m.ID
		if r.State == request.Open {
			r = r.After(&request.End{ID: row.ID, State: request.Cancelled, Reason: "the channel was imported before anybody answered"})
			r.EndedAt = m.ClosedAt
		}
		shown, err := h.SeesRequest(ctx, r, q.As)
		if err != nil {
			return err
		}
		if shown && q.selects(rowOf(r)) {
			page.Requests = append(page.Requests, *r)
		}
	}
	if more {
		page.Next = last
	}
	return nil
}

// importedRows finds where the next requests of an imported channel are, maxScanned at
// most, and reports whether there are more.
func (h *Hub) importedRows(ctx context.Context, channelID string, q RequestQuery) (rows []imported.Row, more bool, err error) {
	rows, ok := h.imported.Of(channelID)
	if !ok {
		if rows, err = h.readImported(ctx, channelID); err != nil {
			return nil, false, err
		}
		h.imported.Keep(channelID, rows)
	}
	after, before := q.After, q.Before
	if q.Newest {
		after, before = before, after
	}
	rows, more, missing := imported.Page(rows, after, before, maxScanned, q.Newest)
	if missing != "" {
		return nil, false, fault.New(fault.Invalid, "'%s' is not a request of this list", missing)
	}
	return rows, more, nil
}

// readImported reads where the requests of an imported channel are, in the order of
// asking.
func (h *Hub) readImported(ctx context.Context, channelID string) (rows []imported.Row, err error) {
	places := map[string]int{}
	for entry, err := range journal.Records(ctx, h.journal, h.tenant.Channel(channelID).Side(), journal.ReadOptions{}) {
		if err != nil {
			return nil, unavailable(err)
		}
		record, err := schema.DecodeSide(entry.Data)
		if err != nil || len(record.Envelope) == 0 {
			continue
		}
		e, err := envelope.Unmarshal(record.Envelope)
		if err != nil {
			continue
		}
		switch e.Type {
		case request.TypeAnswer, request.TypeExpired, request.TypeCancelled:
			if at, ok := places[e.Causation]; ok && rows[at].Ended == 0 {
				rows[at].Ended = entry.Seq
			}
		case request.TypeRequest:
			if _, twice := places[e.ID]; twice {
				continue
			}
			if len(rows) == imported.MaxRows {
				return nil, fault.New(fault.TooLarge, "imported channel '%s' has more than %d requests; read them in its bundle", channelID, imported.MaxRows)
			}
			places[e.ID] = len(rows)
			rows = append(rows, imported.Row{ID: e.ID, Asked: entry.Seq})
		}
	}
	return rows, nil
}

// requestScan is the part of the index that a query reads.
func (h *Hub) requestScan(ctx context.Context, q RequestQuery) (journal.ScanOptions, error) {
	order, state := schema.RequestsAsked, cmp.Or(string(q.State), schema.AnyState)
	if q.ByDue {
		order = schema.RequestsDue
	}
	scan := journal.ScanOptions{Prefix: schema.RequestPrefix(order, state), Backward: q.Newest}
	edge := func(id string) ([]byte, error) {
		row, err := h.requestRow(ctx, id)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "'%s' is not a request of this list", id)
		}
		due := time.Time{}
		if row.Due != 0 {
			due = time.Unix(0, row.Due)
		}
		return schema.RequestKey(order, state, due, id), nil
	}
	after, before := q.After, q.Before
	if q.Newest {
		after, before = before, after
	}
	if after != "" {
		from, err := edge(after)
		if err != nil {
			return scan, err
		}
		scan.From = append(from, 0)
	}
	if before != "" {
		to, err := edge(before)
		if err != nil {
			return scan, err
		}
		scan.To = to
	}
	return scan, nil
}

func (q *RequestQuery) selects(row schema.RequestRow) bool {
	return (q.State == "" || row.State == string(q.State)) && (q.Kind == "" || row.Kind == q.Kind) &&
		(q.Channel == "" || row.Channel == q.Channel) && (q.For == "" || row.For == q.For) && (q.AskedBy == "" || row.AskedBy == q.AskedBy)
}

// showsRequest reports whether an agent may see a request: who asked it, whom it
// is for, and if it is for nobody in particular, who takes part in its channel.
func (h *Hub) showsRequest(ctx context.Context, channelID, askedBy, forWhom, as string) (bool, error) {
	if as == "" || as == askedBy || as == forWhom {
		return true, nil
	}
	if forWhom != "" {
		return false, nil
	}
	s, err := h.snapshot(ctx, channelID, 0)
	if Deleted(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return h.isMember(ctx, s, as)
}

// SeesRequest reports whether an agent may see a request; the empty agent sees
// all.
func (h *Hub) SeesRequest(ctx context.Context, r *Request, as string) (bool, error) {
	return h.showsRequest(ctx, r.Channel, r.AskedBy, r.For, as)
}

// RequestEvent is a request that was asked or has ended.
type RequestEvent struct {
	Request  Request // as it is now
	Position WidePosition
}

// RequestFollower follows the requests of all channels.
type RequestFollower struct {
	hub   *Hub
	query RequestQuery
	wide  *WideFollower
}

// FollowRequests follows the requests that a query selects after a position: each
// is shown when it is asked and when it has ended. State, order and paging of the
// query do not count.
func (h *Hub) FollowRequests(ctx context.Context, q RequestQuery, after WidePosition) (*RequestFollower, error) {
	wide, err := h.FollowAll(ctx, WideOptions{After: after, requests: true})
	if err != nil {
		return nil, err
	}
	q.State = ""
	return &RequestFollower{hub: h, query: q, wide: wide}, nil
}

// Close ends the follower.
func (f *RequestFollower) Close() { f.wide.Close() }

// Next waits for the next request. A position that does not exist is answered
// with a *WideGap.
func (f *RequestFollower) Next(ctx context.Context) (RequestEvent, error) {
	for {
		ev, err := f.wide.Next(ctx)
		if err != nil {
			return RequestEvent{}, err
		}
		r, err := f.hub.Request(ctx, requestOf(ev.Envelope))
		if Deleted(err) {
			continue
		}
		if err != nil {
			return RequestEvent{}, err
		}
		shown, err := f.hub.SeesRequest(ctx, &r, f.query.As)
		if err != nil {
			return RequestEvent{}, err
		}
		if shown && f.query.selects(rowOf(&r)) {
			return RequestEvent{Request: r, Position: ev.Position}, nil
		}
	}
}

// requestOf is the id of the request that an envelope tells of.
func requestOf(e *envelope.Envelope) string {
	if e.Type == request.TypeRequest {
		return e.ID
	}
	return e.Causation
}
