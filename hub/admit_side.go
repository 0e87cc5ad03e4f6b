package hub

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/marks"
	"github.com/parley-hub/parley/hub/internal/registry"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// AdmitSide is Admit for an envelope of the side log: it is checked, stored and
// folded by the channel's adapter, which must be a channel.SideFolder. It has no
// sequence in the history, carries that of the last envelope before it, and is
// shown to followers as a live event. It takes no place in an inbox and is not
// replayed.
func (h *Hub) AdmitSide(ctx context.Context, e *envelope.Envelope, by *Caller) *Pending {
	p := h.admitSide(ctx, e, by)
	h.tellRefusal(p, e)
	return p
}

func (h *Hub) admitSide(ctx context.Context, e *envelope.Envelope, by *Caller) *Pending {
	if err := h.bound(e, by); err != nil {
		return refused(err)
	}
	if strings.HasPrefix(e.Type, "parley.") {
		return refused(fault.New(fault.Invalid, "event_type '%s' is the hub's own; choose one that does not begin with parley.", e.Type))
	}
	sender, err := h.sender(e, by)
	if err != nil {
		return refused(err)
	}
	return h.newPost(postSide, e, sender, by).admit(ctx)
}

// admitSideTo checks a side envelope against a channel. The channel is locked.
func (h *Hub) admitSideTo(ctx context.Context, ch *loadedChannel, sender *registry.Member, e *envelope.Envelope, by *Caller) (p *Pending, err error) {
	defer h.rescue(&err)
	if err := h.accepts(ch, ch.meta, e); err != nil {
		return nil, err
	}
	if err := h.belongs(ctx, ch, ch.meta, ch.state, e); err != nil {
		return nil, err
	}
	folder, ok := ch.adapter.(channel.SideFolder)
	if !ok {
		return nil, fault.New(fault.Protocol, "a %s keeps nothing beside its history; post '%s' to the history", ch.meta.Manifest.Type, e.Type)
	}
	if err := h.withinRate(sender); err != nil {
		return nil, err
	}
	if err := folder.ValidateSide(ch.meta, ch.state, e); err != nil {
		return nil, err
	}
	b := h.newBatch(ch)
	b.caller, b.answer = h.spans.Caller(ctx), e
	if err := b.addSide(e, true); err != nil {
		return nil, err
	}
	if err := b.actedFor(e, by); err != nil {
		return nil, err
	}
	// The history of the batch folds first, so that the adapter validates this state;
	// it is not the one that is kept.
	after := folder.FoldSide(b.state, e)
	if err := b.apply(ch.adapter.OnAccepted(b.meta, after, e)); err != nil {
		return nil, err
	}
	return b.order(ctx)
}

// sideEnvelope is an envelope of the batch for the side log, with what its record
// does to index and claims.
type sideEnvelope struct {
	envelope *envelope.Envelope
	record   journal.Record
	note     schema.SideRecord // kind and name, if it is the hub's own
	// finish, if set, completes a record of the hub with its sequence.
	finish func(seq uint64, r *journal.Record)
}

// addSide stamps an envelope for the side log. It is folded behind the history of
// the batch, when the batch is ordered.
func (b *batch) addSide(e *envelope.Envelope, posted bool) error {
	id, err := b.hub.minter.Mint(b.now, b.lastID)
	if err != nil {
		return unavailable(err)
	}
	e.ID, e.CreatedAt, e.Channel, e.Seq = id, b.now, b.ch.id, b.seq
	side := sideEnvelope{envelope: e}
	if e.Key != "" && posted {
		side.record.Take = append(side.record.Take, b.hub.keyTake(b.ch.adapter, e, b.now))
	}
	b.sides = append(b.sides, side)
	return nil
}

// writeSides folds the batch's side envelopes and writes them, behind the history.
func (b *batch) writeSides() error {
	if len(b.sides) == 0 {
		return nil
	}
	folder, folds := b.ch.adapter.(channel.SideFolder)
	for i := range b.sides {
		side := &b.sides[i]
		e := side.envelope
		e.Seq = b.seq
		data, err := e.Append(nil)
		if err != nil {
			return fault.Wrap(fault.TooLarge, err, "%v", err)
		}
		note, seq := side.note, b.ch.heads.side+uint64(len(b.side))+1
		note.Kind, note.Envelope, note.After = cmp.Or(note.Kind, schema.SideDraft), data, e.Seq
		if note.Kind == schema.SideRequest {
			note.Asked = seq
		}
		b.sideNote(note, func(r *journal.Record) {
			data := r.Data
			*r = side.record
			r.Data = data
			if side.finish != nil {
				side.finish(seq, r)
			}
		})
		if folds && b.state != nil {
			b.state = folder.FoldSide(b.state, e)
		}
		b.items = append(b.items, item{envelope: e, meta: b.meta, where: channel.Side})
		if side.note.Kind != "" || b.state == nil {
			continue // those of the hub are only shown to followers
		}
		if err := b.tellLive(e); err != nil {
			return err
		}
	}
	b.sides = nil
	return nil
}

// addLive puts an envelope that is not stored into the order of the batch's
// deliveries.
func (b *batch) addLive(e *envelope.Envelope) error {
	e.ID, e.CreatedAt, e.Channel, e.Seq = "", b.now, b.ch.id, b.seq
	b.items = append(b.items, item{envelope: e, meta: b.meta, where: channel.Live})
	return b.tellLive(e)
}

// tellLive sets the recipients of the last item of the batch, which is not in the
// history.
func (b *batch) tellLive(e *envelope.Envelope) error {
	to, err := b.recipients(e)
	if err == nil {
		b.tell(to)
	}
	return err
}

// withinRate refuses a sender that is faster than its rule allows.
func (h *Hub) withinRate(sender *registry.Member) error {
	ok, wait := sender.Places.Take(sender.Profile().Enforced().Limits.Rate, h.now())
	if ok {
		return nil
	}
	err := fault.New(fault.RateLimited, "'%s' posts faster than its rule's limits.rate; wait %s", sender.Name(), wait)
	err.RetryAfter = wait
	return err
}

// SendLive delivers an envelope to the connected recipients, and stores nothing: no
// id, no sequence. It carries the last durable sequence, is delivered after it and
// before whatever is stored next, and is dropped by readers that are behind. It
// returns when the envelope has its place in the delivery order. It counts as a post
// towards the sender's rate, except in channels of a dialect, whose queues have
// limits of their own.
func (h *Hub) SendLive(ctx context.Context, e *envelope.Envelope, by *Caller) error {
	return h.SendLiveShared(ctx, e, nil, by)
}

// SendLiveShared is SendLive of an envelope that its dialect has already encoded for
// readers: they only need to write it.
func (h *Hub) SendLiveShared(ctx context.Context, e *envelope.Envelope, shared *Shared, by *Caller) error {
	if err := h.bound(e, by); err != nil {
		return err
	}
	sender, err := h.sender(e, by)
	if err != nil {
		return err
	}
	if err := h.delivery.await(ctx); err != nil {
		return err
	}
	ch, err := h.lock(ctx, e.Channel)
	if err != nil {
		return err
	}
	defer ch.mu.Unlock()
	if err := h.accepts(ch, ch.meta, e); err != nil {
		return err
	}
	if ch.meta.State != channel.Active {
		return fault.New(fault.Protocol, "channel '%s' is not active: it is %s", ch.id, ch.meta.State)
	}
	if err := h.belongs(ctx, ch, ch.meta, ch.state, e); err != nil {
		return err
	}
	if by != nil && dialectOf(ch.adapter) == "" {
		if err := h.withinRate(sender); err != nil {
			return err
		}
	}
	return h.sendLive(ctx, ch, e, shared)
}

// sendLive queues an envelope that is not stored. The channel is locked.
func (h *Hub) sendLive(ctx context.Context, ch *loadedChannel, e *envelope.Envelope, shared *Shared) error {
	in, err := h.members(ctx, ch.adapter, ch.meta, ch.state)
	if err != nil {
		return err
	}
	e.ID, e.Seq, e.CreatedAt = "", ch.heads.history, h.now().UTC()
	it := item{envelope: e, meta: ch.meta, shared: shared, to: ch.adapter.Recipients(ch.meta, ch.state, in, e)}
	if !h.delivery.begin() {
		return errClosed
	}
	h.queueLive(ch, it)
	return nil
}

// liveQueue holds live envelopes of one channel until what the channel ordered
// before them is delivered. They wait for no other channel.
type liveQueue struct {
	mu    sync.Mutex
	items []liveItem
}

type liveItem struct {
	item
	after *Pending // nil: no batch was pending
}

// queueLive delivers a live envelope after the channel's last batch. The caller
// holds the channel's lock, so no later batch is ordered meanwhile.
func (h *Hub) queueLive(ch *loadedChannel, it item) {
	q := ch.lives.Load()
	if q == nil {
		q = &liveQueue{}
		ch.lives.Store(q)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, liveItem{it, ch.last})
	h.drainLives(ch, q)
}

// deliverLives delivers the envelopes that waited for a batch that has ended.
func (h *Hub) deliverLives(ch *loadedChannel) {
	if q := ch.lives.Load(); q != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		h.drainLives(ch, q)
	}
}

func (h *Hub) drainLives(ch *loadedChannel, q *liveQueue) {
	for len(q.items) > 0 && (q.items[0].after == nil || q.items[0].after.finished()) {
		first := q.items[0]
		q.items = q.items[1:]
		if first.after == nil || first.after.err == nil {
			h.dispatchLive(ch, &first.item)
		} else {
			h.stats.lostLive.Add(1) // the batch before it was never stored
		}
		h.delivery.finished()
	}
	if len(q.items) == 0 {
		q.items = nil
	}
}

// dispatchLive delivers a live envelope to the connected recipients.
func (h *Hub) dispatchLive(ch *loadedChannel, it *item) {
	shared := it.shared
	if shared == nil {
		shared = &Shared{}
	}
	h.publish(ch, Event{Envelope: it.envelope, Shared: shared, Live: true, Side: it.where == channel.Side})
	for _, id := range it.to {
		m := h.registry.ByID(id)
		if m == nil || ch.seats.Hides(id) {
			continue
		}
		n := &Notice{Envelope: it.envelope, Channel: it.meta, Recipient: id, Dialect: dialectOf(ch.adapter), Live: true, Side: it.where == channel.Side, Shared: shared}
		if err := m.Link.Deliver(n, func() {}); err != nil {
			h.stats.lostLive.Add(1)
		}
	}
}

// sideNote adds a record to the side log; finish may add what it does to the
// index.
func (b *batch) sideNote(r schema.SideRecord, finish func(*journal.Record)) {
	data, err := r.Encode()
	if err != nil {
		panic("hub: side record: " + err.Error()) // plain strings always encode
	}
	record := journal.Record{Data: data}
	if finish != nil {
		finish(&record)
	}
	b.side = append(b.side, record)
	before := b.currentMarks()
	// Empty marks are kept too, or the old ones would remain.
	if next := before.After(r); !next.None() || !before.None() {
		b.marks = &next
	}
}

func (b *batch) currentMarks() marks.Marks {
	switch {
	case b.marks != nil:
		return *b.marks
	case b.ch.extras != nil:
		return b.ch.extras.marks
	}
	return marks.Marks{}
}

// Side returns the envelopes of a channel's side log, in order. Each has the sequence of
// the last envelope of the history before it.
func (h *Hub) Side(ctx context.Context, channelID string) ([]*envelope.Envelope, error) {
	var found []*envelope.Envelope
	log := h.tenant.Channel(channelID).Side()
	for entry, err := range journal.Records(ctx, h.journal, log, journal.ReadOptions{}) {
		if err != nil {
			return nil, unavailable(err)
		}
		var r schema.SideRecord
		if err := json.Unmarshal(entry.Data, &r, jsontext.AllowDuplicateNames(true)); err != nil || len(r.Envelope) == 0 {
			continue
		}
		e, err := envelope.Unmarshal(r.Envelope)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "%v", err)
		}
		e.Seq = r.After
		found = append(found, e)
	}
	return found, nil
}

// inviteDue is when an opening fails because acks are missing.
func (b *batch) inviteDue() time.Time { return b.meta.CreatedAt.Add(b.hub.opts.InviteAckTimeout) }

// withSides yields the envelopes of an import's history. It writes those of the side log
// on the way, in a batch with the envelope that they follow, because a loaded channel is
// folded in that order.
func (s *seeding) withSides(ctx context.Context, all iter.Seq2[ImportedEnvelope, error]) iter.Seq2[*envelope.Envelope, error] {
	return func(yield func(*envelope.Envelope, error) bool) {
		for e, err := range all {
			if err == nil && e.Side {
				err = s.beside(ctx, e.Envelope)
			} else if !yield(e.Envelope, err) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// beside adds an envelope to the side log.
func (s *seeding) beside(ctx context.Context, e *envelope.Envelope) error {
	if s.last != nil {
		if err := s.add(ctx, s.last); err != nil {
			return err
		}
		s.last = nil
	}
	origin := e.Origin
	e.Channel, e.Sender = s.meta.ID, cmp.Or(e.Sender, s.meta.Creator)
	if err := s.hub.bound(e, nil); err != nil {
		return err
	}
	if !envelope.ValidID(e.ID) {
		return fault.New(fault.Invalid, "the id '%.100s' of a side envelope is not an id: 32 lower-case hexadecimal digits are", e.ID)
	}
	e.Origin = origin
	after := s.heads.history + uint64(len(s.records))
	e.Seq = after
	data, err := e.Append(nil)
	if err != nil {
		return fault.Wrap(fault.TooLarge, err, "%v", err)
	}
	note, err := (&schema.SideRecord{Kind: schema.SideDraft, Envelope: data, After: after}).Encode()
	if err != nil {
		return err
	}
	if len(s.sides) == seedRecords-1 || s.size+len(note) > seedBytes {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	s.sides, s.size = append(s.sides, journal.Record{Data: note}), s.size+len(note)
	if folder, ok := s.adapter.(channel.SideFolder); ok {
		return s.hub.guarded(func() error {
			s.state = folder.FoldSide(s.state, e)
			return nil
		})
	}
	return nil
}
