package agh

import (
	"context"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// told returns the hosted peers that receive a message, without its sender.
func (r *netChannel) told(e *wire.Envelope) []*peer {
	if e.To != "" {
		if p := r.hosted(e.To); p != nil && e.To != e.From && (e.Surface != wire.Direct || e.Counterpart(e.To)) {
			return []*peer{p}
		}
		return nil
	}
	if e.Kind != wire.Say && e.Kind != wire.Capability {
		return nil
	}
	var all []*peer
	for _, p := range r.everyone() {
		if p.id != e.From && (e.Surface != wire.Direct || e.Counterpart(p.id)) {
			all = append(all, p)
		}
	}
	return all
}

// deliver queues a stored message for the hosted peers that it is for.
func (sp *space) deliver(e *wire.Envelope, data []byte, record *envelope.Envelope) {
	r, err := sp.find(e.Channel)
	if err != nil {
		return
	}
	c := sp.changeOf(sp.s.ctx, e, record)
	r.update(func(t *tally) { t.add(e, c) })
	r.measureStored(e, sp.direction(e, record), c)
	item := sync.OnceValue(func() *waiting { return waitingOf(e, data, record) })
	if p := r.hosted(e.From); p != nil && p.agent == record.Sender {
		p.counts.sent.Add(1)
		if e.To == "" {
			p.queue.passed(record.ID) // nothing to deliver
		}
		if sp.s.outbox != nil {
			sp.s.outbox.push(outgoingOf(p, e, item()))
		} else {
			sp.s.audit(item().meta, sent, p.session, "")
		}
	}
	for _, p := range r.told(e) {
		p.tell(item())
	}
	r.tellEvents(e, record, c)
}

// waitingOf returns a stored message as an entry of a queue.
func waitingOf(e *wire.Envelope, data []byte, record *envelope.Envelope) *waiting {
	meta := about(e, len(data))
	return &waiting{
		order: record.ID, channel: record.Channel, seq: record.Seq, id: meta.id, from: meta.from, data: inline(data), meta: meta,
	}
}

func inline(data []byte) []byte {
	if len(data) > keepInline {
		return nil
	}
	return data
}

// tell queues a message for the peer.
func (p *peer) tell(m *waiting) {
	s := p.room.space.s
	_, dropped := p.queue.push(m)
	p.counts.received.Add(1)
	s.audit(m.meta, received, p.session, "")
	if dropped != nil {
		p.queue.passed(dropped.order)
		p.counts.rejected.Add(1)
		s.reject(dropped.meta, p.session, reasonOverflow)
	}
	s.ledger.touch(p)
}

// settle records that a peer has handled a message.
func (p *peer) settle(m *waiting) {
	s := p.room.space.s
	p.queue.passed(m.order)
	p.counts.delivered.Add(1)
	s.audit(m.meta, delivered, p.session, "")
	s.ledger.touch(p)
}

// bytes returns a waiting message as it was sent, without reading it.
func (s *Server) bytes(ctx context.Context, m *waiting) ([]byte, error) {
	if m.data != nil {
		return m.data, nil
	}
	_, data, err := s.read(ctx, m)
	return data, err
}

// read returns a waiting message as it was sent.
func (s *Server) read(ctx context.Context, m *waiting) (*wire.Envelope, []byte, error) {
	if m.data != nil {
		e, err := wire.Decode(m.data, wire.AsStored)
		return e, m.data, err
	}
	for record, err := range s.hub.Log(ctx, m.channel, m.seq, m.seq) {
		if err != nil {
			return nil, nil, err
		}
		return wire.Message(record)
	}
	return nil, nil, fault.New(fault.NotFound, "the message %.100q is no longer stored", m.id)
}

// documentKind is the kind of documents with the progress of hosted peers, which are
// named by workspace and session.
const documentKind = "agh-inbox"

func (p *peer) document() string { return p.room.space.home.ID + "/" + p.session }

// recover queues the messages that the peer received before a restart and had not
// finished. If the queue is too small, the oldest are left out.
func (p *peer) recover(ctx context.Context) error {
	sp := p.room.space
	var at mark
	doc, err := sp.s.hub.Document(ctx, documentKind, p.document())
	switch {
	case err == nil:
		if err := json.Unmarshal(doc.Data, &at); err != nil {
			return fault.Wrap(fault.Internal, err, "the position of %q cannot be read: %v", p.id, err)
		}
		p.documented = true
	case fault.CodeOf(err) != fault.NotFound:
		return err
	}
	left := map[string]bool{}
	oldest := at.After
	for _, id := range at.Left {
		left[id] = true
		oldest = min(oldest, id)
	}
	p.queue.begin(at.After)
	if oldest == "" {
		oldest = p.joinedBound()
	}
	var found []toldEntry
	for _, kind := range []string{thread.Type, direct.Type} {
		for _, to := range []string{p.id, ""} {
			prefix := work.ToldPrefix(p.room.channel, to)
			n := 0
			err := sp.entries(ctx, hub.EntryQuery{Type: kind, Prefix: prefix, Reverse: true, Limit: min(p.queue.depth, 500)}, func(e hub.Entry) (bool, error) {
				order := e.Key[len(prefix):]
				if order < oldest {
					return false, nil
				}
				if order > at.After || left[order] {
					told, err := work.ParseTold(e.Value)
					if err != nil {
						return false, fault.Wrap(fault.Internal, err, "%v", err)
					}
					found = append(found, toldEntry{order, e.Channel, told.Seq})
					n++
				}
				return n < p.queue.depth, nil
			})
			if err != nil {
				return err
			}
		}
	}
	return p.requeue(ctx, found)
}
