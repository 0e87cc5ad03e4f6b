package hub

import (
	"cmp"
	"context"
	"maps"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/registry"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/internal/jsonscan"
	"github.com/parley-hub/parley/journal"
)

// Post admits an envelope and waits until it is durable and delivered.
func (h *Hub) Post(ctx context.Context, e *envelope.Envelope, by *Caller) (string, error) {
	return h.Admit(ctx, e, by).Wait(ctx)
}

// Admit checks an envelope and, if it is accepted, appends it and everything it
// causes as one batch. It returns without waiting for the disk, so that a caller
// can pipeline its posts; they are stored in that order. The hub owns the envelope
// from here on.
func (h *Hub) Admit(ctx context.Context, e *envelope.Envelope, by *Caller) *Pending {
	p := h.admit(ctx, e, by)
	h.tellRefusal(p, e)
	return p
}

// tellRefusal reports a refused post of an envelope once the refusal is final.
func (h *Hub) tellRefusal(p *Pending, e *envelope.Envelope) {
	if p.done != closedChan || p.err == nil {
		return
	}
	if (p.basis == nil || p.basis.finished() && p.basis.err == nil) && (p.lost == nil || p.lost.Outcome() == journal.Durable) {
		h.rejected(e, p.err)
	} else {
		p.stands = sync.OnceFunc(func() { h.rejected(e, p.err) }) // unless the post is checked again
	}
}

// rejected logs and counts a refusal, and calls the listeners.
func (h *Hub) rejected(e *envelope.Envelope, err error) {
	if fault.CodeOf(err) == fault.Internal {
		return
	}
	h.stats.refuse(fault.CodeOf(err))
	h.warnings.Warn(h.log, h.now(), "post_envelope rejected", "channel_id", e.Channel, "sender_id", e.Sender, "event_type", e.Type, "error", err)
	h.hooks.each(func(l Listener) { l.EnvelopeRejected(e, err) })
}

func (h *Hub) admit(ctx context.Context, e *envelope.Envelope, by *Caller) *Pending {
	if err := h.bound(e, by); err != nil {
		return refused(err)
	}
	sender, err := h.sender(e, by)
	if err != nil {
		return refused(err)
	}
	return h.newPost(postOne, e, sender, by).admit(ctx)
}

// sender returns the registered sender, and refuses a caller that may not act for it.
func (h *Hub) sender(e *envelope.Envelope, by *Caller) (*registry.Member, error) {
	sender := h.registry.ByID(e.Sender)
	if sender == nil {
		return nil, fault.New(fault.NotFound, "sender not registered: '%s'", e.Sender)
	}
	if !by.MayActFor(e.Sender) {
		return nil, fault.New(fault.AccessDenied, "this connection may not act for '%s': register it or say hello as it first", e.Sender)
	}
	e.Sender = sender.ID // the registry's copy of the id: states keep it in memory
	return sender, nil
}

// bound checks sizes and encodings, so that adapters need not.
func (h *Hub) bound(e *envelope.Envelope, by *Caller) error {
	switch {
	case e.Type == "":
		return fault.New(fault.Invalid, "event_type is empty; any non-empty name is accepted")
	case e.Channel == "":
		return fault.New(fault.NotFound, "channel not found: the envelope names none").Because(fault.NoChannel)
	case len(e.Data) > h.opts.Limits.EventBytes:
		return fault.New(fault.TooLarge, "event_data has %d bytes; at most %d (limits.event)", len(e.Data), h.opts.Limits.EventBytes)
	}
	// A dialect has read the payload already; a program that embeds the hub may
	// hand over anything.
	if value := jsontext.Value(e.Data); value.Kind() != '{' || by == nil && !jsonscan.Valid(e.Data) {
		return fault.New(fault.Invalid, "event_data is not a JSON object")
	}
	if err := tooDeep("event_data", e.Data); err != nil {
		return err
	}
	e.Priority = cmp.Or(e.Priority, envelope.Normal)
	e.Type = envelope.Canonical(e.Type)
	e.Origin = cleanOrigin(e.Origin)
	return nil
}

// cleanOrigin removes an origin that only the hub itself may set.
func cleanOrigin(o envelope.Origin) envelope.Origin {
	if o.Dialect == hubMade {
		return envelope.Origin{}
	}
	return o
}

// admitTo checks an envelope against a channel. The channel is locked.
func (h *Hub) admitTo(ctx context.Context, ch *loadedChannel, sender *registry.Member, e *envelope.Envelope, by *Caller) (p *Pending, err error) {
	defer h.rescue(&err)
	if err := h.accepts(ch, ch.meta, e); err != nil {
		return nil, err
	}
	if err := h.belongs(ctx, ch, ch.meta, ch.state, e); err != nil {
		return nil, err
	}
	if err := h.answeredElsewhere(ch, sender, e, by); err != nil {
		return nil, err
	}
	var places []string
	if !envelope.IsProtocol(e.Type) {
		if places, err = h.capacity(ch, ch.meta, ch.state, sender, e, nil); err != nil {
			return nil, err
		}
	}
	kept := false
	defer func() {
		if !kept {
			h.vacate(e.Sender, places)
		}
	}()
	if p, kept = h.hold(ctx, ch, e, places, by); p != nil {
		return p, nil
	}
	p, err = h.offer(ctx, ch, e, places, by)
	kept = err == nil
	return p, err
}

// offer validates with the adapter and appends what it accepts. Places are the inboxes
// in which room is reserved for the envelope.
func (h *Hub) offer(ctx context.Context, ch *loadedChannel, e *envelope.Envelope, places []string, by *Caller) (*Pending, error) {
	if err := ch.adapter.ValidateSend(ch.meta, ch.state, e); err != nil {
		return nil, err
	}
	if err := ch.answeredTwice(e); err != nil {
		return nil, err
	}
	b := h.newBatch(ch)
	b.caller, b.places, b.by = h.spans.Caller(ctx), places, by
	if err := b.accept(e); err != nil {
		return nil, err
	}
	p, err := b.order(ctx)
	if err == nil {
		b.release()
		ch.noteAnswer(e)
	}
	return p, err
}

// accept adds an envelope and everything it causes to the batch.
func (b *batch) accept(e *envelope.Envelope) error {
	heldBack, err := b.injections(e)
	if err != nil {
		return err
	}
	b.answer = e
	absorbed := e.Type == envelope.TypeInviteAck || e.Type == envelope.TypeInviteReject
	if err := b.add(e, !absorbed); err != nil {
		return err
	}
	b.items[len(b.items)-1].places = b.places
	if err := b.actedFor(e, b.by); err != nil {
		return err
	}
	if absorbed {
		return b.answerInvite(e)
	}
	to, err := b.recipients(e)
	if err != nil {
		return err
	}
	b.tell(to)
	b.skipInjected(heldBack)
	if err := b.unhide(e); err != nil {
		return err
	}
	return b.apply(b.ch.adapter.OnAccepted(b.meta, b.state, e))
}

// apply adds an adapter's effects to the batch.
func (b *batch) apply(fx channel.Effects) error {
	if len(fx.Claims)+len(fx.Release)+len(fx.Index)+len(fx.Unindex) > 0 {
		if err := b.putEntries(&fx); err != nil {
			return err
		}
	}
	for _, r := range fx.Audit {
		if err := b.auditFor(r); err != nil {
			return err
		}
	}
	if err := b.deadlines(fx.Deadlines); err != nil {
		return err
	}
	for i := range fx.Append {
		if err := b.draft(&fx.Append[i]); err != nil {
			return err
		}
	}
	reason := cmp.Or(fx.Reason, "adapter_ended") // an end always has a reason
	switch fx.Next {
	case channel.Closing, channel.Closed:
		return b.end(channel.Closed, reason)
	case channel.Expired:
		return b.end(channel.Expired, reason)
	}
	return nil
}

// putEntries puts an adapter's claims and index entries on a record of the batch.
func (b *batch) putEntries(fx *channel.Effects) error {
	var r *journal.Record
	switch {
	case len(b.history) > 0:
		r = &b.history[len(b.history)-1]
	case len(b.sides) > 0:
		r = &b.sides[len(b.sides)-1].record
	default:
		return fault.New(fault.Internal, "the adapter of channel '%s' wants claims or index entries without an envelope to hold them", b.ch.id)
	}
	for _, name := range fx.Claims {
		r.Take = append(r.Take, journal.Take{Name: schema.AdapterClaim(b.ch.id, name)})
	}
	for _, name := range fx.Release {
		r.Release = append(r.Release, schema.AdapterClaim(b.ch.id, name))
	}
	return b.entries(r, fx)
}

// auditFor writes an audit record of an adapter's.
func (b *batch) auditFor(r channel.AuditRecord) error {
	if r.Kind == "" {
		return fault.New(fault.Internal, "the adapter of channel '%s' wants an audit record without a kind", b.ch.id)
	}
	f := make(fields, len(r.Fields)+1)
	maps.Copy(f, r.Fields)
	f["channel_id"] = b.ch.id
	return b.audit(r.Kind, f)
}

// draft writes an envelope that an adapter appends.
func (b *batch) draft(d *channel.Draft) error {
	e := d.Envelope.Clone()
	e.Origin = envelope.Origin{Dialect: hubMade}
	e.Sender = cmp.Or(e.Sender, b.meta.Creator)
	switch d.Where {
	case channel.Side:
		if err := b.addSide(e, false); err != nil {
			return err
		}
		return b.entries(&b.sides[len(b.sides)-1].record, &channel.Effects{Index: d.Index})
	case channel.Live:
		return b.addLive(e)
	}
	if err := b.add(e, false); err != nil {
		return err
	}
	to, err := b.recipients(e)
	if err == nil {
		b.tell(to)
	}
	return err
}

// accepts checks the channel's lifecycle.
func (h *Hub) accepts(ch *loadedChannel, m *channel.Metadata, e *envelope.Envelope) error {
	if m.State.Terminal() {
		return errOver(m)
	}
	if m.State != channel.Active && !envelope.IsProtocol(e.Type) {
		return fault.New(fault.Protocol, "channel '%s' is not active: it is %s", ch.id, m.State)
	}
	if h.adapterOf(m.Manifest.Key()) == nil {
		return fault.New(fault.Protocol, "channel '%s' has no registered adapter for %s version %d", ch.id, m.Manifest.Type, m.Manifest.Version)
	}
	if ch.state == nil || ch.adapter == nil {
		return errNoState(ch)
	}
	return nil
}

func errOver(m *channel.Metadata) error {
	return fault.New(fault.Protocol, "channel '%s' is %s (%s) and accepts nothing more", m.ID, m.State, m.CloseReason).Because(fault.ChannelEnded)
}

// belongs refuses a sender that is neither a member nor expected to speak, and one that
// was removed.
func (h *Hub) belongs(ctx context.Context, ch *loadedChannel, m *channel.Metadata, s channel.State, e *envelope.Envelope) error {
	if ch.extras != nil && ch.extras.marks.Bars(e.Sender) && !envelope.IsProtocol(e.Type) {
		return fault.New(fault.AccessDenied, "'%s' was removed from channel '%s'", e.Sender, ch.id)
	}
	if h.opts.TrustClients {
		return nil
	}
	in, err := h.members(ctx, ch.adapter, m, s)
	if err != nil || in.Has(e.Sender) {
		return err
	}
	if admitter, ok := ch.adapter.(channel.Admitter); ok && admitter.Admits(m, s, in, e.Sender) {
		return nil
	}
	if turn, ok := ch.adapter.Expected(m, s); ok && turn.Agent == e.Sender {
		return nil
	}
	return fault.New(fault.AccessDenied, "'%s' is not a participant: %s '%s' only accepts sends from participants",
		e.Sender, ch.meta.Manifest.Type, ch.id)
}

// CanSend reports whether the adapter would accept an envelope of a type from
// a sender now. It checks nothing else.
func (h *Hub) CanSend(ctx context.Context, channelID, sender, eventType string) (bool, error) {
	eventType = cmp.Or(eventType, envelope.TypeText)
	probe := &envelope.Envelope{Channel: channelID, Sender: sender, Type: eventType, Priority: envelope.Normal, Data: []byte(`{"text":""}`)}
	can, err := answer(ctx, h, channelID, func(ch *loadedChannel) (bool, error) {
		if ch.meta.State.Terminal() || ch.state == nil {
			return false, nil
		}
		return ch.adapter.ValidateSend(ch.meta, ch.state, probe) == nil, nil
	})
	if fault.CodeOf(err) == fault.NotFound {
		return false, nil
	}
	return can, err
}

// answeredTwice refuses the second answer to a turn that was delivered to its
// speaker twice. Turn order alone would accept it once it is the speaker's turn
// again.
func (ch *loadedChannel) answeredTwice(e *envelope.Envelope) error {
	if ch.extras == nil || !ch.extras.redelivered.Answered(e) {
		return nil
	}
	turn, ok := ch.adapter.Expected(ch.meta, ch.state)
	if !ok || turn.Agent != e.Sender || turn.Trigger == e.Causation {
		return nil
	}
	return fault.New(fault.Protocol, "'%s' has answered '%s' already; channel '%s' expects its answer to '%s'",
		e.Sender, e.Causation, ch.id, turn.Trigger)
}

// answeredElsewhere refuses an answer from a connection that its sender has
// replaced by another one, if the envelope it answers was replayed to the new
// connection: the answer comes from there.
func (h *Hub) answeredElsewhere(ch *loadedChannel, sender *registry.Member, e *envelope.Envelope, by *Caller) error {
	if by == nil || by.Connection == "" || h.opts.TrustClients {
		return nil
	}
	if ch.extras == nil || !ch.extras.redelivered.Replayed(e) || !sender.Link.Elsewhere(by.Connection) {
		return nil
	}
	return fault.New(fault.AccessDenied, "'%s' has attached at another connection, which was handed '%s' to answer", e.Sender, e.Causation)
}

// noteAnswer records that a turn was answered.
func (ch *loadedChannel) noteAnswer(e *envelope.Envelope) {
	if ch.extras != nil {
		ch.extras.redelivered.NoteAnswer(e)
	}
}
