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
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/marks"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/hub/tracing"
	"github.com/parley-hub/parley/journal"
)

// hubMade marks envelopes that the hub wrote itself, so that a client's post
// of the same type is never mistaken for one.
const hubMade = envelope.OriginHub

// HubMade reports whether the hub wrote an envelope itself.
func HubMade(e *envelope.Envelope) bool { return e.Origin.Dialect == hubMade }

// batch collects one atomic write for one channel, under the channel's lock: an
// envelope and everything that it causes.
type batch struct {
	hub        *Hub
	ch         *loadedChannel
	now        time.Time
	meta       *channel.Metadata
	state      channel.State
	watch      watch
	seq        uint64
	lastID     string
	history    []journal.Record
	metas      []journal.Record
	side       []journal.Record
	sides      []sideEnvelope // written to the side log after the history
	audits     []journal.Record
	tasks      []journal.Append
	running    map[string]*schema.StoredTask // the channel's tasks that the batch changes
	marks      *marks.Marks                  // if they change
	refusal    error                         // why the creator is refused, if the opening fails
	items      []item
	before     []func()             // run before the envelopes are delivered
	after      []func()             // run after all are delivered
	answer     *envelope.Envelope   // whose id is the answer to a post
	posted     []*envelope.Envelope // all of a post of several
	places     []string             // inboxes in which room is reserved
	openingKey string               // the claim of an opening's idempotency key; empty: none
	crossing   bool                 // it was said in another dialect, and its origin counts once
	spoken     bool                 // the supervisors' waiting words are part of the batch
	scheduling bool                 // it creates the channel; its first side record is written last
	active     bool                 // the channel that it creates is open from the beginning

	caller tracing.Caller // how the post came
	by     *Caller        // the caller; nil: the hub itself, or the program that embeds it

	// Of a check of the expectations.
	checking bool           // this batch sets the time of the next check
	custom   expect.Instant // when custom evaluators want the next check
	full     bool           // more is due than fits in the batch
	then     []func()       // calls of custom handlers
	waits    [4]expect.Wait // preallocated room for the awaited participants

	// Preallocated room for the common cases: one record in one log, and a channel that
	// is opened with its first envelope.
	oneRecord  [1]journal.Record
	fewAppends [4]journal.Append
	oneItem    [1]item

	// Memory that is used again, because the journal copies what it is given: for encoded
	// envelopes and creations, and for the records of several envelopes.
	arena   []byte
	records []journal.Record
}

func (h *Hub) newBatch(ch *loadedChannel) *batch {
	if ch.watch.plan == nil {
		active := ch.watch.Active
		ch.watch = h.watchOf(ch.meta, ch.watch.NextCheck)
		ch.watch.Active = active
	}
	b := batchPool.Get().(*batch)
	b.hub, b.ch, b.now = h, ch, h.now().UTC()
	b.meta, b.state, b.watch, b.seq, b.lastID = ch.meta, ch.state, ch.watch, ch.heads.history, ch.lastID
	b.history, b.items = b.oneRecord[:0], b.oneItem[:0]
	return b
}

// expect makes room for a number of envelopes, with so many bytes of payloads.
func (b *batch) expect(n, bytes int) {
	b.history = slices.Grow(b.records[:0], n)
	b.items = itemsFor(n)
	b.arena = slices.Grow(b.arena, n*envelopeRoom+bytes)
}

// Bounds of the memory that a batch is given for encoded envelopes: how much an
// envelope takes besides its payload, as a rule, and how much, and how many records, are
// kept for the next batch.
const (
	envelopeRoom = 256
	maxArena     = 64 << 10
	maxRecords   = 128
)

// encode encodes an envelope in memory that is used again when the batch is
// released.
func (b *batch) encode(e *envelope.Envelope) ([]byte, error) {
	from := len(b.arena)
	data, err := e.Append(slices.Grow(b.arena, len(e.Data)+envelopeRoom))
	if err != nil {
		return nil, err
	}
	b.arena = data
	return data[from:len(data):len(data)], nil
}

// itemsPool reuses the items of batches of several envelopes.
var itemsPool sync.Pool

// itemsFor returns room for n items.
func itemsFor(n int) []item {
	if room, ok := itemsPool.Get().(*[]item); ok && cap(*room) >= n {
		return *room
	}
	return make([]item, 0, n)
}

// reuseItems keeps the room of items that have been delivered.
func reuseItems(items []item) {
	if n := cap(items); n > len(Pending{}.one) && n <= maxRecords {
		clear(items)
		items = items[:0]
		itemsPool.Put(&items)
	}
}

// batchPool reuses batches: every post needs one, and it is the largest value that
// a post allocates.
var batchPool = sync.Pool{New: func() any { return new(batch) }}

// release returns the batch to the pool once it is ordered, unless a later callback may
// still read it.
func (b *batch) release() {
	if b.then == nil {
		arena := b.arena[:0]
		if cap(arena) > maxArena {
			arena = nil
		}
		records := b.records
		if n := cap(b.history); n > maxRecords {
			records = nil
		} else if n > len(b.oneRecord) {
			clear(b.history)
			records = b.history
		}
		*b = batch{arena: arena, records: records[:0]}
		batchPool.Put(b)
	}
}

// add stamps an envelope, folds it and puts it into the batch.
func (b *batch) add(e *envelope.Envelope, posted bool) error {
	id, err := b.hub.minter.Mint(b.now, b.lastID)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "not stored, try again: %v", err)
	}
	e.ID, e.CreatedAt, e.Seq, e.Channel = id, b.now, b.seq+1, b.ch.id
	var span *tracing.EnvelopeSpan
	if posted {
		span = b.hub.spans.Envelope(e, b.caller, b.now)
	}
	data, err := b.encode(e)
	if err != nil {
		return fault.Wrap(fault.TooLarge, err, "%v", err)
	}
	record := journal.Record{Data: data}
	if e.Causation != "" {
		record.Put = append(record.Put, journal.IndexPut{
			Key: schema.CauseKey(b.ch.id, e.Sender, e.Causation), Value: schema.EncodeUint(e.Seq),
		})
	}
	if e.Key != "" && posted {
		record.Take = append(record.Take, b.hub.keyTake(b.ch.adapter, e, b.now))
	}
	if name := originClaim(e); name != "" && b.crossing && posted {
		record.Take = append(record.Take, journal.Take{Name: name, Expires: b.now.Add(b.hub.opts.IdempotencyWindow)})
	}
	b.history = append(b.history, record)
	b.seq, b.lastID = e.Seq, id
	before := b.state
	span.Phase(tracing.Admission, b.hub.now)
	b.state = b.ch.adapter.Fold(b.state, e)
	span.Phase(tracing.Fold, b.hub.now)
	if span.Records() {
		b.noteTurn(span, before, e)
	}
	b.watch = b.watch.after(b.ch.adapter, b.meta, b.state, e)
	b.items = append(b.items, item{envelope: e, meta: b.meta, posted: posted, span: span})
	return nil
}

// tell sets the recipients of the last added envelope.
func (b *batch) tell(agents []string) { b.items[len(b.items)-1].to = agents }

// hubEnvelope adds an envelope that the hub itself writes. Its sender is the
// channel's creator, because the hub has no identity.
func (b *batch) hubEnvelope(eventType string, data []byte, to []string) error {
	err := b.add(&envelope.Envelope{
		Sender: b.meta.Creator, Type: eventType, Audience: to, Data: data,
		Priority: envelope.Normal, Origin: envelope.Origin{Dialect: hubMade},
	}, false)
	if err == nil {
		b.tell(to)
	}
	return err
}

// change edits the batch's copy of the metadata.
func (b *batch) change(edit func(m *channel.Metadata)) {
	if b.meta == b.ch.meta {
		copied := *b.ch.meta
		b.meta = &copied
	}
	edit(b.meta)
}

func (b *batch) audit(kind string, f fields) error {
	record, err := b.hub.auditRecord(kind, f)
	if err == nil {
		b.audits = append(b.audits, record)
	}
	return err
}

// order passes the batch to the journal. When it returns without an error, the fold
// includes the batch, which will be delivered once it is durable.
func (b *batch) order(ctx context.Context) (*Pending, error) {
	if err := b.writeSides(); err != nil {
		return nil, err
	}
	b.list()
	if err := b.reschedule(); err != nil {
		return nil, err
	}
	b.noteActivity()
	b.writeSchedule()
	logs := &b.ch.logs
	commit := journal.Batch{Term: b.ch.term, Appends: b.fewAppends[:0]}
	put := func(log journal.LogName, head uint64, records []journal.Record) {
		if len(records) > 0 {
			commit.Appends = append(commit.Appends, journal.Append{
				Log: log, Expect: journal.Exactly(head), Records: records,
			})
		}
	}
	put(logs.History(), b.ch.heads.history, b.history)
	put(logs.Meta(), b.ch.heads.meta, b.metas)
	put(logs.Side(), b.ch.heads.side, b.side)
	if len(b.audits) > 0 {
		commit.Appends = append(commit.Appends, journal.Append{Log: logs.Audit(), Records: b.audits})
	}
	commit.Appends = append(commit.Appends, b.tasks...)
	ticket, err := b.hub.journal.Append(ctx, commit)
	if err != nil {
		if !retryFold(err) {
			b.hub.failSpans(b.items, err)
		}
		return nil, err
	}
	pending := &Pending{
		hub: b.hub, done: make(chan struct{}), ticket: ticket, ch: b.ch, channel: b.ch.id, items: b.items, audits: b.audits, before: b.before, after: b.after,
	}
	if len(b.items) <= 1 { // the batch's own room is used again
		pending.items = append(pending.one[:0], b.items...)
	}
	if b.answer != nil {
		pending.id, pending.seq = b.answer.ID, b.answer.Seq
	}
	if len(b.posted) > 0 {
		pending.all = make([]stored, 0, len(b.posted))
	}
	for _, e := range b.posted {
		pending.all = append(pending.all, stored{id: e.ID, seq: e.Seq})
	}
	b.answerSpoken(pending)
	b.settle(pending)
	if !b.hub.delivery.push(pending) {
		// Ordered while the hub closed: it may be stored, but is not delivered.
		pending.err = errClosed
		pending.end()
	}
	return pending, nil
}

// settle moves the fold on to what was ordered.
func (b *batch) settle(p *Pending) {
	ch := b.ch
	ch.meta, ch.state, ch.watch, ch.lastID, ch.last = b.meta, b.state, b.watch, b.lastID, p
	ch.heads.history = b.seq
	ch.heads.meta += uint64(len(b.metas))
	ch.heads.side += uint64(len(b.side))
	p.left = ch.current()
	for id, task := range b.running {
		ch.ensureExtras().setTask(id, task)
	}
	if b.marks != nil {
		ch.ensureExtras().marks = *b.marks
		ch.seats.Hide(b.marks.Muted())
	}
	b.hub.saveDue(ch)
}

// errNothing ends a batch that turns out to have nothing to write.
var errNothing = errors.New("nothing to write")

// idle reports whether a batch has nothing to write and leaves the next check of
// the expectations where it is.
func (b *batch) idle() bool {
	return len(b.history)+len(b.metas)+len(b.side)+len(b.sides)+len(b.audits)+len(b.tasks) == 0 && b.nextCheck() == b.watch.NextCheck
}

// fill puts something into the batch and orders it. A panic of the adapter is an
// error.
func (b *batch) fill(ctx context.Context, put func(b *batch) error) (p *Pending, err error) {
	defer b.hub.rescue(&err)
	if err := put(b); err != nil {
		return nil, err
	}
	return b.order(ctx)
}

// writeBatch writes one batch to a channel and returns it while it is pending, or
// nil if there was nothing to write. It calls put again if the fold that the batch
// was computed from is gone.
func (h *Hub) writeBatch(ctx context.Context, channelID string, put func(b *batch) error) (*Pending, error) {
	if err := h.delivery.await(ctx); err != nil {
		return nil, err
	}
	for {
		ch, err := h.lock(ctx, channelID)
		if err != nil {
			return nil, err
		}
		b := h.newBatch(ch)
		p, err := b.fill(ctx, put)
		if retryFold(err) {
			h.abandon(ch)
			continue
		}
		ch.mu.Unlock()
		if errors.Is(err, errNothing) {
			return nil, nil
		}
		return p, err
	}
}
