package hub

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/journal"
)

// hubMade marks envelopes that the hub wrote itself, so that a client's post
// of the same type is never mistaken for one.
const hubMade = "hub"

// HubMade reports whether the hub wrote an envelope itself.
func HubMade(e *envelope.Envelope) bool { return e.Origin.Dialect == hubMade }

// writing is one batch for one channel while it is put together, under the
// channel's lock: an envelope and all that it causes.
type writing struct {
	hub     *Hub
	ch      *held
	now     time.Time
	meta    *channel.Metadata
	state   channel.State
	watch   watch
	seq     uint64
	lastID  string
	history []journal.Record
	metas   []journal.Record
	side    []journal.Record
	audits  []journal.Record
	tasks   []journal.Append
	running map[string]*running // the channel's tasks that the batch changes
	marks   *marks              // if they change
	refusal error               // why the creator is refused, if the opening fails
	items   []item
	before  []func()           // run before anyone is told of the envelopes
	after   []func()           // and once everyone has been
	answer  *envelope.Envelope // whose id is the answer to a post
	places  []string           // in whose inboxes there is room for it
	spoken  bool               // the supervisors' waiting words are part of the batch

	caller trace.SpanContext // in which span the post is made

	// Of a look at the expectations.
	looking bool     // it sets the next look, whenever that is
	custom  instant  // when evaluators that are not ours want to look again
	full    bool     // more is due than fits the batch
	then    []func() // handlers that are not ours
	waits   [4]wait  // room for whom expectations wait for

	// Room for what most batches are: one record in one log.
	oneRecord [1]journal.Record
	oneAppend [1]journal.Append
}

func (h *Hub) write(ch *held) *writing {
	if ch.watch.plan == nil {
		ch.watch = h.watchOf(ch.meta, ch.watch.look)
	}
	w := writings.Get().(*writing)
	w.hub, w.ch, w.now = h, ch, h.now().UTC()
	w.meta, w.state, w.watch, w.seq, w.lastID = ch.meta, ch.state, ch.watch, ch.heads.history, ch.lastID
	w.history = w.oneRecord[:0]
	return w
}

// writings are used again: one is put together for every post, and is larger
// than all else that a post needs.
var writings = sync.Pool{New: func() any { return new(writing) }}

// release gives the batch back once it is ordered, unless something that runs
// later may look at it.
func (w *writing) release() {
	if w.before == nil && w.after == nil && w.then == nil {
		*w = writing{}
		writings.Put(w)
	}
}

// add stamps an envelope, folds it and puts it into the batch.
func (w *writing) add(e *envelope.Envelope, posted bool) error {
	id, err := w.hub.minter.Mint(w.now, w.lastID)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "not stored, try again: %v", err)
	}
	e.ID, e.CreatedAt, e.Seq, e.Channel = id, w.now, w.seq+1, w.ch.id
	span := w.traceEnvelope(e, posted)
	data, err := e.Append(make([]byte, 0, len(e.Data)+256))
	if err != nil {
		return fault.Wrap(fault.TooLarge, err, "%v", err)
	}
	record := journal.Record{Data: data}
	if e.Causation != "" {
		record.Put = append(record.Put, journal.IndexPut{
			Key: causeKey(w.ch.id, e.Sender, e.Causation), Value: encodeUint(e.Seq),
		})
	}
	if e.Key != "" && posted {
		record.Take = append(record.Take, journal.Take{
			Name: claimKey(w.ch.id, e.Sender, e.Key), Expires: w.now.Add(w.hub.opts.IdempotencyWindow),
		})
	}
	w.history = append(w.history, record)
	w.seq, w.lastID = e.Seq, id
	w.state = w.ch.adapter.Fold(w.state, e)
	w.watch = w.watch.after(w.ch.adapter, w.meta, w.state, e)
	w.items = append(w.items, item{envelope: e, meta: w.meta, posted: posted, span: span})
	return nil
}

// tell sets whom the last added envelope is delivered to.
func (w *writing) tell(agents []string) { w.items[len(w.items)-1].to = agents }

// own adds an envelope of the hub's, which the channel's creator signs: there
// is no identity of the hub.
func (w *writing) own(eventType string, data []byte, to []string) error {
	err := w.add(&envelope.Envelope{
		Sender: w.meta.Creator, Type: eventType, Audience: to, Data: data,
		Priority: envelope.Normal, Origin: envelope.Origin{Dialect: hubMade},
	}, false)
	if err == nil {
		w.tell(to)
	}
	return err
}

// change makes the metadata the batch's own, to be changed.
func (w *writing) change(edit func(m *channel.Metadata)) {
	if w.meta == w.ch.meta {
		copied := *w.ch.meta
		w.meta = &copied
	}
	edit(w.meta)
}

func (w *writing) audit(kind string, f fields) error {
	record, err := w.hub.auditRecord(kind, f)
	if err == nil {
		w.audits = append(w.audits, record)
		w.before = append(w.before, func() { w.hub.stored(record) })
	}
	return err
}

// order hands the batch to the journal. When it returns without an error the
// fold has moved on, and the batch will be delivered once it is durable.
func (w *writing) order(ctx context.Context) (*Pending, error) {
	if err := w.reschedule(); err != nil {
		return nil, err
	}
	p := w.ch.partition()
	batch := journal.Batch{Term: w.ch.term, Appends: w.oneAppend[:0]}
	put := func(family string, head uint64, records []journal.Record) {
		if len(records) > 0 {
			batch.Appends = append(batch.Appends, journal.Append{
				Log: p.In(family, only), Expect: journal.Exactly(head), Records: records,
			})
		}
	}
	put(familyHistory, w.ch.heads.history, w.history)
	put(familyMeta, w.ch.heads.meta, w.metas)
	put(familySide, w.ch.heads.side, w.side)
	if len(w.audits) > 0 {
		batch.Appends = append(batch.Appends, journal.Append{Log: p.In(familyAudit, only), Records: w.audits})
	}
	batch.Appends = append(batch.Appends, w.tasks...)
	ticket, err := w.hub.journal.Append(ctx, batch)
	if err != nil {
		if !retryFold(err) {
			w.hub.failSpans(w.items, err)
		}
		return nil, err
	}
	pending := &Pending{
		hub: w.hub, done: make(chan struct{}), ticket: ticket, ch: w.ch, items: w.items, before: w.before, after: w.after,
	}
	if w.answer != nil {
		pending.id = w.answer.ID
	}
	w.answerSpoken(pending)
	w.settle(pending)
	if !w.hub.delivery.push(pending) {
		// Ordered while the hub closed: it may be stored, and nobody is told.
		pending.err = errClosed
		pending.end()
	}
	return pending, nil
}

// settle moves the fold on to what was ordered.
func (w *writing) settle(p *Pending) {
	ch := w.ch
	ch.meta, ch.state, ch.watch, ch.lastID, ch.last = w.meta, w.state, w.watch, w.lastID, p
	ch.heads.history = w.seq
	ch.heads.meta += uint64(len(w.metas))
	ch.heads.side += uint64(len(w.side))
	for id, task := range w.running {
		ch.more().keep(id, task)
	}
	if w.marks != nil {
		ch.more().marks = *w.marks
		ch.readers.hide(w.marks.muted())
	}
}

func causeKey(channelID, sender, cause string) []byte {
	return key(indexCause, channelID, digest(sender, cause))
}
