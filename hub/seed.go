package hub

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/content"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Bounds of one batch of a seed.
const (
	seedRecords = 512
	seedBytes   = 1 << 20
)

// Seed opens a channel that has a history already: a fork, an import. The envelopes are
// bounded as posts are, and folded, but not validated by the adapter and not delivered.
// They are written in batches. The last batch writes the last envelope with its effects,
// creates the channel and takes its name. Until then the channel is invisible, and if Seed
// fails, nothing of it remains.
//
// An envelope that has an id keeps it, so that causes within a fork stay true:
// ids grow from one envelope to the next, and are not from the future. One that
// has a time keeps that. The channel's adapter opens at once.
func (h *Hub) Seed(ctx context.Context, o Opening, envelopes iter.Seq2[*envelope.Envelope, error]) (Opened, error) {
	if o.Name != "" {
		if err := h.checkName(o); err != nil {
			return Opened{}, err
		}
		holder, err := h.Named(ctx, o.Home, o.Type, o.Name)
		if err == nil {
			return Opened{}, errNameTaken(holder, o)
		}
		if fault.CodeOf(err) != fault.NotFound {
			return Opened{}, err
		}
	}
	s := &seeding{hub: h, envelopes: envelopes}
	o.seed = s
	created, p, _, err := h.begin(ctx, o, nil, nil)
	if err != nil {
		s.giveUp()
		lost, err := taken(err)
		if lost != nil && lost.Wait(ctx) != nil {
			return Opened{}, fault.Wrap(fault.Unavailable, err, "the name was being taken by a batch that then failed; try again: %v", err)
		}
		return Opened{}, unavailable(err)
	}
	// From here on only the journal knows whether the channel exists. If it does not, the
	// seed's entry in the index does, and the sweeper removes the seed.
	if _, err := p.Wait(ctx); err != nil {
		return Opened{}, err
	}
	created.Metadata, err = h.Channel(ctx, created.ID)
	return created, err
}

func errNameTaken(holder string, o Opening) error {
	refusal := fault.New(fault.Conflict, "taken by channel '%s': home '%s' has a %s called %.100q", holder, o.Home, o.Type, o.Name).Because(fault.Taken)
	refusal.Details = map[string]string{fault.DetailChannel: holder}
	return refusal
}

// seeding writes the history of a channel that does not exist yet. All but the
// last envelope are written before the channel; a nil one writes nothing.
type seeding struct {
	hub       *Hub
	envelopes iter.Seq2[*envelope.Envelope, error]
	imported  bool // all of it is written before the channel, and nothing follows from it

	adapter channel.Adapter
	meta    *channel.Metadata
	logs    schema.ChannelLogs
	state   channel.State
	watch   watch
	heads   heads
	lastID  string
	due     []byte // index key while the channel does not exist
	begun   time.Time
	last    *envelope.Envelope // not written yet
	records []journal.Record
	sides   []journal.Record // of an import, behind the records
	size    int
}

// write writes all but the last envelope, and returns the state after them.
func (s *seeding) write(ctx context.Context, a channel.Adapter, m *channel.Metadata, state channel.State) (channel.State, error) {
	if s == nil {
		return state, nil
	}
	if a.Opening() != channel.AtOnce && !s.imported {
		return nil, fault.New(fault.Protocol, "a %s opens by invitation, not with a history", m.Manifest.Type)
	}
	s.adapter, s.meta, s.logs, s.state = a, m, s.hub.tenant.Channel(m.ID), state
	s.watch, s.begun = s.hub.watchOf(m, 0), s.hub.now()
	for e, err := range s.envelopes {
		if err == nil && s.last != nil {
			err = s.add(ctx, s.last)
		}
		if err == nil {
			err = s.stamp(e)
		}
		if err != nil {
			return nil, err
		}
		s.last = e
	}
	if s.imported && s.last != nil {
		if err := s.add(ctx, s.last); err != nil {
			return nil, err
		}
		s.last = nil
	}
	return s.state, s.flush(ctx)
}

// stamp checks an envelope and sets its place.
func (s *seeding) stamp(e *envelope.Envelope) error {
	e.Channel, e.Sender = s.meta.ID, cmp.Or(e.Sender, s.meta.Creator)
	origin := e.Origin
	if err := s.hub.bound(e, nil); err != nil {
		return err
	}
	if s.imported {
		e.Origin = origin // also where the hub made it, there
	}
	now, before := s.hub.now().UTC(), s.lastID
	if s.last != nil {
		before = s.last.ID
	}
	id, err := s.hub.minter.Mint(now, before)
	if err != nil {
		return unavailable(err)
	}
	if e.ID != "" && (!envelope.ValidID(e.ID) || e.ID <= before || e.ID > id) {
		return fault.New(fault.Invalid, "envelope id '%.100s' does not follow '%s'; ids grow in a seed, and an envelope without one gets one", e.ID, before)
	}
	e.ID = cmp.Or(e.ID, id)
	if e.CreatedAt.IsZero() {
		e.CreatedAt = now
	}
	return nil
}

// record numbers an envelope and encodes it.
func (s *seeding) record(e *envelope.Envelope, seq uint64) (journal.Record, error) {
	e.Seq = seq
	data, err := e.Append(make([]byte, 0, len(e.Data)+256))
	if err != nil {
		return journal.Record{}, fault.Wrap(fault.TooLarge, err, "%v", err)
	}
	return journal.Record{Data: data}, nil
}

func (s *seeding) add(ctx context.Context, e *envelope.Envelope) error {
	record, err := s.record(e, s.heads.history+uint64(len(s.records))+1)
	if err != nil {
		return err
	}
	if len(s.sides) > 0 || len(s.records) == seedRecords-1 || s.size+len(record.Data) > seedBytes {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	s.records, s.size = append(s.records, record), s.size+len(record.Data)
	s.lastID = e.ID
	return s.hub.guarded(func() error {
		s.state = s.adapter.Fold(s.state, e)
		s.watch = s.watch.after(s.adapter, s.meta, s.state, e)
		return nil
	})
}

// flush makes a batch durable. A side record distinguishes it from posts; the first of
// them says when an unfinished seed is removed.
func (s *seeding) flush(ctx context.Context) error {
	if len(s.records)+len(s.sides) == 0 {
		return nil
	}
	if s.hub.now().Sub(s.begun) > content.AbandonAfter-time.Minute { // before the sweeper takes it
		return content.ErrTooLong("seed")
	}
	side, err := (&schema.SideRecord{Kind: schema.SideSeed}).Encode()
	if err != nil {
		return err
	}
	note := journal.Record{Data: side}
	if s.due == nil {
		s.due = schema.DueKey(schema.DueSeed, s.begun.Add(content.AbandonAfter), s.meta.ID)
		note.Put = []journal.IndexPut{{Key: s.due}}
	}
	var batch journal.Batch
	if len(s.records) > 0 {
		batch.Appends = append(batch.Appends, journal.Append{Log: s.logs.History(), Expect: journal.Exactly(s.heads.history), Records: s.records})
	}
	batch.Appends = append(batch.Appends, journal.Append{
		Log: s.logs.Side(), Expect: journal.Exactly(s.heads.side), Records: append([]journal.Record{note}, s.sides...),
	})
	ticket, err := s.hub.appendUnfinished(ctx, s.meta.ID, batch)
	if err == nil {
		err = ticket.Wait(ctx)
	}
	if err != nil {
		return unavailable(err)
	}
	s.heads.history += uint64(len(s.records))
	s.heads.side += 1 + uint64(len(s.sides))
	s.records, s.sides, s.size = nil, nil, 0
	return nil
}

// plant makes a new channel continue what the seed has written.
func (s *seeding) plant(ch *loadedChannel) {
	if s != nil {
		ch.watch, ch.heads, ch.lastID = s.watch, s.heads, s.lastID
	}
}

// finish puts the seed's last envelope into the batch of the creation, and what
// follows from it.
func (s *seeding) finish(b *batch) error {
	if s == nil {
		return nil
	}
	if s.hub.now().Sub(s.begun) > content.AbandonAfter-time.Minute {
		return content.ErrTooLong("seed")
	}
	if s.due != nil {
		b.sideNote(schema.SideRecord{Kind: schema.SideSeeded}, func(r *journal.Record) { r.Remove = append(r.Remove, s.due) })
	}
	if s.last == nil {
		return nil
	}
	record, err := s.record(s.last, b.seq+1)
	if err != nil {
		return err
	}
	b.history = append(b.history, record)
	b.seq, b.lastID = s.last.Seq, s.last.ID
	b.state = b.ch.adapter.Fold(b.state, s.last)
	b.watch = b.watch.after(b.ch.adapter, b.meta, b.state, s.last)
	b.items = append(b.items, item{envelope: s.last, meta: b.meta})
	return b.apply(b.ch.adapter.OnAccepted(b.meta, b.state, s.last))
}

// giveUp removes what was written. If that fails, the sweeper does it.
func (s *seeding) giveUp() {
	if s.due == nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.hub.background, 10*time.Second)
	defer cancel()
	if err := s.hub.dropUnfinished(ctx, "", s.meta.ID); err != nil {
		s.hub.log.Warn("unfinished seed is not removed yet", "channel_id", s.meta.ID, "error", err)
	}
}

// Imported is a channel from elsewhere, or from an earlier time.
type Imported struct {
	// Metadata is what it was. Its agents need not be registered here. Its id is
	// not kept, and one that had not ended has ended now.
	Metadata  *channel.Metadata
	Envelopes iter.Seq2[ImportedEnvelope, error]
	Home      string // id of the home that it gets; empty: none
	From      string // where it came from, kept as the label "imported_from"
	By        *Caller
}

// ImportedEnvelope is an envelope of an imported history, or of its side log, such as a
// request: it follows the envelope that it came after. A request of an import is listed
// with its channel, but is not a request of this hub.
type ImportedEnvelope struct {
	*envelope.Envelope
	Side bool
}

// LabelImported is the label that says where an imported channel came from.
const LabelImported = "imported_from"

// Import stores a channel for reading, with the ids, times and senders of its envelopes:
// it has ended, nothing is validated or delivered, and nothing follows from it. Until it is
// complete it is invisible.
func (h *Hub) Import(ctx context.Context, in Imported) (*channel.Metadata, error) {
	if in.Metadata == nil || in.Metadata.Manifest == nil {
		return nil, fault.New(fault.Invalid, "the channel has no metadata")
	}
	adapter := h.adapterOf(in.Metadata.Manifest.Key())
	if adapter == nil {
		return nil, h.errNoAdapter(in.Metadata.Manifest.Key())
	}
	m, err := h.ended(in)
	if err != nil {
		return nil, err
	}
	var state channel.State
	err = h.guarded(func() (err error) {
		state, err = adapter.Initial(m)
		return err
	})
	if err != nil {
		return nil, err
	}
	s := &seeding{hub: h, imported: true}
	s.envelopes = s.withSides(ctx, in.Envelopes)
	if _, err := s.write(ctx, adapter, m, state); err != nil {
		s.giveUp()
		return nil, err
	}
	if err := h.storeImported(ctx, m, s, in.By); err != nil {
		s.giveUp()
		return nil, err
	}
	return m, nil
}

// ended is the metadata of an imported channel.
func (h *Hub) ended(in Imported) (*channel.Metadata, error) {
	m := *in.Metadata
	if n, limit := len(m.Participants), h.opts.Limits.Participants; n > limit {
		return nil, fault.New(fault.TooLarge, "%d participants; at most %d (limits.participants)", n, limit)
	}
	if limit := h.opts.Limits.EventBytes; len(m.Knobs) > limit {
		return nil, fault.New(fault.TooLarge, "knobs has %d bytes; at most %d (limits.event)", len(m.Knobs), limit)
	}
	if err := tooDeep("knobs", m.Knobs); err != nil {
		return nil, err
	}
	id, err := h.minter.Mint(h.now().UTC(), "")
	if err != nil {
		return nil, unavailable(err)
	}
	m.ID, m.Parent, m.PendingAcks = id, "", nil
	if in.Home == "" {
		m.Name, m.MembersOf = "", ""
	} else if m.ID = schema.InHome(in.Home, id); m.MembersOf != "" && HomeOf(m.MembersOf) != in.Home {
		return nil, fault.New(fault.Invalid, "its members are those of channel '%.100s', which is not in its home", m.MembersOf)
	}
	m.Labels = maps.Clone(m.Labels)
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	m.Labels[LabelImported] = cmp.Or(in.From, in.Metadata.ID)
	size := 0
	for k, v := range m.Labels {
		size += len(k) + len(v)
	}
	if err := h.boundRecord("labels", size); err != nil {
		return nil, err
	}
	if !m.State.Terminal() {
		m.State, m.CloseReason, m.ClosedAt = channel.Closed, "imported", h.now().UTC()
	}
	return &m, nil
}

// storeImported makes the channel exist.
func (h *Hub) storeImported(ctx context.Context, m *channel.Metadata, s *seeding, by *Caller) error {
	data, err := schema.EncodeCreated(m)
	if err != nil {
		return err
	}
	home, own := schema.Split(m.ID)
	created := journal.Record{Data: data, Put: []journal.IndexPut{{Key: schema.Key(schema.IndexChannel, own), Value: []byte(home)}}}
	for _, k := range slices.Sorted(maps.Keys(m.Labels)) {
		created.Put = append(created.Put, journal.IndexPut{Key: schema.Key(schema.IndexLabel, schema.Digest(k, m.Labels[k]), own), Value: []byte(home)})
	}
	if m.Name != "" {
		created.Take = []journal.Take{{Name: schema.ChannelNameClaim(home, m.Manifest.Type, m.Name)}}
	}
	side, err := (&schema.SideRecord{Kind: schema.SideSeeded}).Encode()
	if err != nil {
		return err
	}
	seeded := journal.Record{Data: side}
	if s.due != nil {
		seeded.Remove = [][]byte{s.due}
	}
	f := fields{"channel_id": m.ID, "manifest_type": m.Manifest.Type, "from": m.Labels[LabelImported], "envelopes": s.heads.history}
	by.describe(f)
	line, err := h.ledger.AuditRecord("channel_imported", f)
	if err != nil {
		return err
	}
	logs := h.tenant.Channel(m.ID)
	commit := journal.Batch{Appends: []journal.Append{
		{Log: logs.Meta(), Expect: journal.Exactly(0), Records: []journal.Record{created}},
		{Log: logs.Side(), Expect: journal.Exactly(s.heads.side), Records: []journal.Record{seeded}},
		{Log: logs.Audit(), Records: []journal.Record{line}},
	}}
	ticket, err := h.appendUnfinished(ctx, m.ID, commit)
	if err == nil {
		err = ticket.Wait(ctx)
	}
	if err != nil {
		return unavailable(err)
	}
	h.ledger.StoredIn(&commit)
	return nil
}
