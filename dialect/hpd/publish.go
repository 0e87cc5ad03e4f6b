package hpd

import (
	"cmp"
	"context"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/view/branch"
)

// published is one checked event of a producer.
type published struct {
	event   *wire.Event
	data    []byte
	durable bool
	key     string // of a repeated call; empty: none
}

// publishKeyed publishes events once for each key.
func (s *Server) publishKeyed(ctx context.Context, x *run, events []*wire.Event, key string) error {
	if key == "" {
		return s.publish(ctx, x, events)
	}
	list, err := s.checkAll(x, events)
	if err != nil {
		return err
	}
	unlock := s.locks.lock("publish/" + x.id)
	defer unlock()
	if err := s.endedBefore(ctx, x, list, key); err != nil {
		return err
	}
	x.mu.Lock()
	again := x.keys[key]
	x.mu.Unlock()
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].durable == list[0].durable {
			n++
		}
		if list[0].durable || !again {
			for i := range list[:n] {
				if list[i].durable {
					list[i].key = keyOf(key, len(list)-i)
				}
			}
			x.mu.Lock()
			pending, err := s.order(ctx, x, list[:n])
			x.mu.Unlock()
			if err != nil {
				return err
			}
			for _, p := range pending {
				if _, err := p.Wait(ctx); err != nil {
					return err
				}
				again = again || p.Repeated()
			}
		}
		list = list[n:]
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.keys == nil || !x.keys[key] && len(x.keys) >= s.cfg.Limits.Keys {
		x.keys = map[string]bool{}
	}
	x.keys[key] = true
	return nil
}

// publish publishes a producer's events, all or none: it checks them, stores the
// durable ones and shows the rest, in order.
func (s *Server) publish(ctx context.Context, x *run, events []*wire.Event) error {
	if len(events) == 1 {
		return s.publishOne(ctx, x, events[0])
	}
	list, err := s.checkAll(x, events)
	if err != nil {
		return err
	}
	x.mu.Lock()
	if err = x.turnOpen(list); err != nil {
		x.mu.Unlock()
		return err
	}
	pending, err := s.order(ctx, x, list)
	x.mu.Unlock()
	for _, p := range pending {
		if _, failed := p.Wait(ctx); failed != nil && err == nil {
			err = failed
		}
	}
	return err
}

// publishOne does the same as publish for one event, which is the usual number.
func (s *Server) publishOne(ctx context.Context, x *run, e *wire.Event) error {
	p, keep, err := s.checkPublished(x, e)
	if err != nil || !keep {
		return err
	}
	x.mu.Lock()
	if err = s.begin(x); err == nil && isTurnEnd(e) {
		err = x.turnOpen([]published{p})
		x.cut(&p)
	}
	var pending *hub.Pending
	switch {
	case err != nil:
	case p.durable:
		pending = s.hub.Admit(ctx, s.stored(x, &p), trusted)
	default:
		shown := *p.event // a copy, so that a stored event need not be on the heap
		err = s.showPublished(ctx, x, &shown, p.data)
	}
	x.mu.Unlock()
	if pending != nil {
		_, err = pending.Wait(ctx)
	}
	return err
}

// checkAll checks events and leaves out those that the server has written itself.
func (s *Server) checkAll(x *run, events []*wire.Event) ([]published, error) {
	list := make([]published, 0, len(events))
	ends := false
	for i, e := range events {
		p, keep, err := s.checkPublished(x, e)
		if err == nil && isTurnEnd(e) {
			if ends {
				err = errTurnEnded(x.turn)
			}
			ends = true
		}
		if err != nil {
			if len(events) > 1 {
				err = fault.Wrap(fault.CodeOf(err), err, "event %d: %v", i, err).Because(fault.ReasonOf(err))
			}
			return nil, err
		}
		if keep {
			list = append(list, p)
		}
	}
	return list, nil
}

// checkPublished returns an error for an event that a producer may not publish.
// Keep is false for the beginning of the turn, which the server has written.
func (s *Server) checkPublished(x *run, e *wire.Event) (p published, keep bool, err error) {
	if err := s.cfg.Registry.CheckPublished(e); err != nil {
		return p, false, err
	}
	scope := x.scope.wire()
	if e.Scope.Session != "" && e.Scope.Session != scope.Session || e.Scope.Branch != "" && e.Scope.Branch != scope.Branch {
		return p, false, fault.New(fault.Invalid, "%s names another scope, branch %.60q of session %.60q; the run is on branch %q of session %q",
			e.Payload.EventType(), e.Scope.Branch, e.Scope.Session, scope.Branch, scope.Session)
	}
	if start, ok := e.Payload.(wire.MessageTurnStarted); ok {
		if start.MessageTurnID != x.turn {
			return p, false, fault.New(fault.Invalid, "MESSAGE_TURN_STARTED begins turn %.60q; the run's turn is %s, and the server has begun it", start.MessageTurnID, x.turn)
		}
		return p, false, nil
	}
	if end, ok := e.Payload.(wire.MessageTurnFinished); ok && end.MessageTurnID != x.turn {
		return p, false, fault.New(fault.Invalid, "MESSAGE_TURN_FINISHED ends turn %.60q; the run's turn is %s", end.MessageTurnID, x.turn)
	}
	data, err := e.Data()
	if err != nil {
		return p, false, err
	}
	if limit := s.cfg.Limits.Event; len(data) > limit {
		return p, false, fault.New(fault.TooLarge, "%s has %d bytes; an event takes at most %d (limits.event)", e.Payload.EventType(), len(data), limit)
	}
	p = published{event: e, data: data, durable: s.cfg.Registry.Table.Durable(e.Payload.EventType(), data, false)}
	x.stamp(&e.Base, p.durable)
	return p, true, nil
}

// stamp fills in the fields that a run's events have in common.
func (x *run) stamp(b *wire.Base, durable bool) {
	b.Scope = x.scope.wire()
	b.TraceID = cmp.Or(b.TraceID, x.trace)
	if b.Metadata == nil {
		b.Metadata = x.attribution()
	}
	if b.EventFlowID == "" || durable {
		b.EventFlowID = x.turn
	}
	b.EventID, b.SequenceNumber = "", 0
}

// ordinary reports whether an event's live-only fields are those of its run.
func (x *run) ordinary(b *wire.Base) bool {
	return b.TraceID == x.trace && b.Metadata == x.root && b.SpanID == "" && b.ParentSpanID == "" &&
		b.Channel == 0 && b.Kind == 0 && b.Direction == 0 && !b.MustSurvive && b.ExchangeTimestampNs == 0
}

// attribution returns the run's agent, as its events name it.
func (x *run) attribution() *branch.Agent {
	x.rootOnce.Do(func() { x.root = branch.RootAgent(x.agentID, x.name) })
	return x.root
}

// order appends events in order. The caller holds the run's lock, and must wait for
// the ordered events, also after an error.
func (s *Server) order(ctx context.Context, x *run, list []published) (pending []*hub.Pending, err error) {
	if err := s.begin(x); err != nil {
		return nil, err
	}
	for i := range list {
		x.cut(&list[i])
	}
	for len(list) > 0 {
		n := 0
		for n < len(list) && list[n].durable {
			n++
		}
		if n == 0 {
			if err := s.showPublished(ctx, x, list[0].event, list[0].data); err != nil {
				return pending, err
			}
			list = list[1:]
			continue
		}
		batch := make([]*envelope.Envelope, n)
		for i := range list[:n] {
			batch[i] = s.stored(x, &list[i])
		}
		pending = append(pending, s.hub.AdmitAll(ctx, batch, trusted))
		list = list[n:]
	}
	return pending, nil
}

// begin returns an error if a run is over. The caller holds the run's lock.
func (s *Server) begin(x *run) error {
	if x.ended {
		return errRunOver(x.id)
	}
	if !x.noted {
		s.notes.putTurn(x.turn, &wire.Base{TraceID: x.trace, Metadata: x.attribution()})
		x.plainExt = branch.Ext{Flow: x.turn}.Bytes()
		x.noted = true
	}
	return nil
}

// stored returns a durable event as an envelope for the log. The caller holds the
// run's lock.
func (s *Server) stored(x *run, p *published) *envelope.Envelope {
	e := &envelope.Envelope{
		Channel: x.scope.channel, Sender: x.agent, Priority: envelope.Normal,
		Type: branch.LogType(p.event.Payload.EventType()), Data: p.data, Ext: x.plainExt, Key: p.key,
	}
	s.counts.stored.Add(1)
	if p.event.Timestamp != "" {
		e.Ext = branch.Ext{Flow: x.turn, Time: p.event.Timestamp}.Bytes()
	}
	if !x.ordinary(&p.event.Base) {
		own := p.event.Base
		s.notes.put(e, &own)
	}
	if end, ok := p.event.Payload.(wire.MessageTurnFinished); ok && end.MessageTurnID == x.turn {
		x.turnEnded = true
	}
	return e
}

// show shows an event live, after the events that the run has stored before.
func (s *Server) show(ctx context.Context, x *run, e *wire.Event) error {
	data, err := e.Data()
	if err != nil {
		return err
	}
	return s.showPublished(ctx, x, e, data)
}

func (s *Server) showPublished(ctx context.Context, x *run, e *wire.Event, data []byte) error {
	x.stamp(&e.Base, false)
	s.counts.live.Add(1)
	return s.showData(ctx, x.scope.channel, x.agent, e, data)
}

func (s *Server) showIn(ctx context.Context, channelID, sender string, e *wire.Event) error {
	data, err := e.Data()
	if err != nil {
		return err
	}
	return s.showData(ctx, channelID, sender, e, data)
}

// showData shows an event with its payload. It encodes the form that nearly all
// readers use before it wakes them, so that they only have to write it.
func (s *Server) showData(ctx context.Context, channelID, sender string, e *wire.Event, data []byte) error {
	if e.Timestamp == "" {
		e.Timestamp = wire.FormatTime(s.now())
	}
	name, shared := e.Payload.EventType(), &hub.Shared{}
	shared.Bytes(sharedAs[wire.Branches], func() []byte {
		return wire.AppendLive(nil, wire.Branches, name, data, &e.Base)
	})
	return s.hub.SendLiveShared(ctx, &envelope.Envelope{
		Channel: channelID, Sender: sender, Type: branch.LogType(name), Data: data,
		Ext: liveExt(&e.Base), Priority: envelope.Normal,
	}, shared, trusted)
}
