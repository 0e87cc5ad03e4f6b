package hub

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/registry"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/request"
)

// Request is something that waits for somebody.
type Request = request.Request

// Asking is a request to be asked.
type Asking = request.Asking

// Ask stores a request in a channel and returns it once it is durable. Any member
// may ask, in or out of turn.
func (h *Hub) Ask(ctx context.Context, q Asking, by *Caller) (Request, error) {
	r := &q.Request
	if err := r.Prepare(h.now().UTC()); err != nil {
		return Request{}, err
	}
	e := &envelope.Envelope{
		Channel: r.Channel, Sender: r.AskedBy, Type: request.TypeRequest, Audience: audience(r),
		Priority: envelope.Normal, Origin: envelope.Origin{Dialect: hubMade},
	}
	asker, err := h.sender(e, by)
	if err != nil {
		return Request{}, err
	}
	if r.For != "" && h.registry.ByID(r.For) == nil {
		return Request{}, fault.New(fault.NotFound, "nobody is registered as '%s', whom the request is for", r.For).Because(fault.NoAgent)
	}
	for {
		if again, found, err := h.askedBefore(ctx, &q); err != nil || found {
			return again, err
		}
		p, err := h.ask(ctx, asker, e, &q)
		if isConflict(err) {
			continue // the same key was used in the meantime
		}
		if err != nil {
			return Request{}, unavailable(err)
		}
		if _, err := p.Wait(ctx); err != nil {
			return Request{}, err
		}
		asked := *r
		asked.Similar, err = h.similar(ctx, &asked)
		return asked, err
	}
}

// audience returns the agents that see a request in its channel.
func audience(r *Request) []string {
	if r.For == "" {
		return nil
	}
	return []string{r.For}
}

// ask orders a request. No other of the same asker is counted meanwhile.
func (h *Hub) ask(ctx context.Context, asker *registry.Member, e *envelope.Envelope, q *Asking) (*Pending, error) {
	asker.Asking.Lock()
	defer asker.Asking.Unlock()
	if err := h.mayAskMore(ctx, q.AskedBy); err != nil {
		return nil, err
	}
	p, err := h.writeBatch(ctx, q.Channel, func(b *batch) error {
		if err := h.accepts(b.ch, b.meta, e); err != nil {
			return err
		}
		if b.meta.State != channel.Active {
			return fault.New(fault.Protocol, "channel '%s' is not active: it is %s", b.ch.id, b.meta.State)
		}
		if err := h.belongs(ctx, b.ch, b.meta, b.state, e); err != nil {
			return err
		}
		if limit := h.opts.Limits.OpenRequests; len(b.currentMarks().Open) >= limit {
			return fault.New(fault.TooLarge, "channel '%s' has %d open requests, which is the limit (limits.open_requests); answer or cancel one", b.ch.id, limit)
		}
		return b.ask(e, q)
	})
	if err != nil {
		return nil, err
	}
	_, err = p.released(ctx) // so that the next one counts it
	return p, err
}

func (h *Hub) mayAskMore(ctx context.Context, asker string) error {
	limit := h.opts.Limits.AskedRequests
	n := 0
	for _, err := range journal.IndexAll(ctx, h.journal, journal.ScanOptions{Prefix: schema.Key(schema.IndexRequestAsker, asker, "")}) {
		if err != nil {
			return unavailable(err)
		}
		if n++; n >= limit {
			return fault.New(fault.TooLarge, "'%s' has %d open requests, which is the limit (limits.asked_requests); cancel one", asker, limit)
		}
	}
	return nil
}

// ask puts a request into the batch.
func (b *batch) ask(e *envelope.Envelope, q *Asking) error {
	if err := b.addSide(e, false); err != nil {
		return err
	}
	r := &q.Request
	r.ID, r.AskedAt = e.ID, b.now
	data, err := r.Encode()
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the request cannot be written: %v", err)
	}
	e.Data = data
	side := &b.sides[len(b.sides)-1]
	side.note = schema.SideRecord{Kind: schema.SideRequest, Name: r.ID}
	row := rowOf(r)
	if q.Key != "" {
		side.record.Take = append(side.record.Take, journal.Take{Name: schema.RequestKeyClaim(r.Channel, r.AskedBy, q.Key)})
	}
	side.finish = func(seq uint64, record *journal.Record) {
		row.Asked = seq
		putRow(record, &row, r.DueAt, r.ID)
		record.Put = append(record.Put, journal.IndexPut{Key: schema.Key(schema.IndexRequestAsker, r.AskedBy, r.ID)})
		if !r.DueAt.IsZero() {
			record.Put = append(record.Put, journal.IndexPut{Key: schema.DueKey(schema.DueRequest, r.DueAt, r.ID), Value: []byte(r.Channel)})
		}
	}
	return nil
}

func rowOf(r *Request) schema.RequestRow {
	row := schema.RequestRow{Channel: r.Channel, Kind: r.Kind, For: r.For, AskedBy: r.AskedBy, State: string(r.State)}
	if !r.DueAt.IsZero() {
		row.Due = r.DueAt.UnixNano()
	}
	return row
}

// putRow lists a request under its state, and among all.
func putRow(record *journal.Record, row *schema.RequestRow, due time.Time, id string) {
	value := row.Encode()
	for _, state := range []string{schema.AnyState, row.State} {
		for _, k := range schema.RequestKeys(state, due, id) {
			record.Put = append(record.Put, journal.IndexPut{Key: k, Value: value})
		}
	}
}

// askedBefore finds the request that was asked with the same key.
func (h *Hub) askedBefore(ctx context.Context, q *Asking) (_ Request, found bool, err error) {
	if q.Key == "" {
		return Request{}, false, nil
	}
	state, err := h.journal.Claim(ctx, h.shardOf(q.Channel), schema.RequestKeyClaim(q.Channel, q.AskedBy, q.Key))
	if err != nil || state.Ordered == nil {
		return Request{}, false, unavailable(err)
	}
	if state.Pending != nil {
		if err := state.Pending.Wait(ctx); err != nil {
			return Request{}, false, unavailable(ctx.Err()) // the first was not stored, unless we gave up
		}
	}
	first, err := h.readSide(ctx, state.Ordered.Log, state.Ordered.Seq)
	if err != nil {
		return Request{}, false, err
	}
	asked, err := h.Request(ctx, first.Name)
	if err != nil {
		return Request{}, false, err
	}
	if !asked.SameQuestion(&q.Request) {
		return Request{}, false, fault.New(fault.Conflict, "idempotency key '%s' was used for another request, '%s'; choose a new one", q.Key, asked.ID)
	}
	return asked, true, nil
}

// readSide reads one record of a side log.
func (h *Hub) readSide(ctx context.Context, log journal.LogName, seq uint64) (schema.SideRecord, error) {
	page, err := h.journal.Read(ctx, log, journal.ReadOptions{From: seq, To: seq})
	if err != nil {
		return schema.SideRecord{}, unavailable(err)
	}
	if len(page.Entries) == 0 {
		return schema.SideRecord{}, errNoRequest("")
	}
	r, err := schema.DecodeSide(page.Entries[0].Data)
	if err != nil {
		err = fault.Wrap(fault.Internal, err, "side record %d of %s cannot be read: %v", seq, log, err)
	}
	return r, err
}

func errNoRequest(id string) error {
	return fault.New(fault.NotFound, "request not found: '%s'", id)
}

// requestWaits wakes calls that wait for the end of a request.
type requestWaits struct {
	mu    sync.Mutex
	ended map[string][]chan struct{} // by request
}

func (w *requestWaits) add(id string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended == nil {
		w.ended = map[string][]chan struct{}{}
	}
	c := make(chan struct{})
	w.ended[id] = append(w.ended[id], c)
	return c
}

func (w *requestWaits) remove(id string, c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended[id] = slices.DeleteFunc(w.ended[id], func(other chan struct{}) bool { return other == c })
	if len(w.ended[id]) == 0 {
		delete(w.ended, id)
	}
}

func (w *requestWaits) wake(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.ended[id] {
		close(c)
	}
	delete(w.ended, id)
}

// AwaitRequest returns a request once it is no longer open.
func (h *Hub) AwaitRequest(ctx context.Context, id string) (Request, error) {
	for {
		ended := h.requests.add(id)
		r, err := h.Request(ctx, id)
		if err != nil || r.State != request.Open {
			h.requests.remove(id, ended)
			return r, err
		}
		select {
		case <-ended:
		case <-ctx.Done():
			h.requests.remove(id, ended)
			return r, fault.Wrap(fault.Unavailable, ctx.Err(), "gave up waiting for request '%s': %v", id, ctx.Err())
		case <-h.background.Done():
			h.requests.remove(id, ended)
			return r, errClosed
		}
	}
}

// Asker makes requests for a caller, in the form of package agent.
type Asker struct {
	hub *Hub
	by  *Caller
}

// Asker returns the caller's way to ask.
func (h *Hub) Asker(by *Caller) Asker { return Asker{h, by} }

// Ask is Hub.Ask.
func (a Asker) Ask(ctx context.Context, q Asking) (*Request, error) {
	r, err := a.hub.Ask(ctx, q, a.by)
	return &r, err
}

// AwaitRequest is Hub.AwaitRequest.
func (a Asker) AwaitRequest(ctx context.Context, id string) (*Request, error) {
	r, err := a.hub.AwaitRequest(ctx, id)
	return &r, err
}

var errNotOpen = errors.New("the request is not open")

// RequestTotal counts the requests that a query selects, and looks at a bounded
// number of them.
func (h *Hub) RequestTotal(ctx context.Context, q RequestQuery) (t Total, err error) {
	q.After, q.Before = "", ""
	m, err := h.importedChannel(ctx, q.Channel)
	if err != nil {
		return t, err
	}
	if m != nil {
		return h.importedTotal(ctx, m, q)
	}
	scan, err := h.requestScan(ctx, q)
	if err != nil {
		return t, err
	}
	scanned := 0
	for entry, err := range journal.IndexAll(ctx, h.journal, scan) {
		if err != nil {
			return t, unavailable(err)
		}
		if scanned++; scanned > maxScanned {
			return t, nil
		}
		row, err := schema.DecodeRequestRow(entry.Value)
		if err != nil {
			return t, fault.Wrap(fault.Internal, err, "request '%s' cannot be read: %v", schema.LastPart(entry.Key), err)
		}
		if !q.selects(row) {
			continue
		}
		shown, err := h.showsRequest(ctx, row.Channel, row.AskedBy, row.For, q.As)
		if err != nil {
			return t, err
		}
		if shown && !t.Add() {
			return t, nil
		}
	}
	t.Exact = true
	return t, nil
}

// importedTotal counts the requests that an import brought.
func (h *Hub) importedTotal(ctx context.Context, m *channel.Metadata, q RequestQuery) (t Total, err error) {
	for {
		var page RequestPage
		if err := h.importedRequests(ctx, m, q, &page); err != nil {
			return t, err
		}
		for range page.Requests {
			if !t.Add() {
				return t, nil
			}
		}
		if q.After = page.Next; q.After == "" {
			t.Exact = true
			return t, nil
		}
	}
}
