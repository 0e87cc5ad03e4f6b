package agh

import (
	"context"
	"time"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
)

// publishWithin bounds how long one message may take to reach the broker.
const publishWithin = 5 * time.Second

// attach connects a hosted peer to the broker: it receives broadcasts of its channel
// and messages directed to it, and greets now and then at an interval. Without a
// broker it does nothing.
func (s *Server) attach(p *peer) error {
	if s.cfg.Broker == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(s.ctx)
	p.room.mu.Lock()
	if p.detach != nil || p.room.peers[p.id] != p {
		p.room.mu.Unlock()
		cancel()
		return nil
	}
	p.detach = cancel
	p.room.mu.Unlock()
	if err := p.room.listen(); err != nil {
		cancel()
		return err
	}
	stop, err := p.room.subscribe(func(version int) (string, error) {
		return wire.PeerSubject(version, p.room.space.name, p.room.channel, p.id)
	})
	p.room.mu.Lock()
	p.unsubscribe = stop
	p.room.mu.Unlock()
	if err != nil {
		p.room.unlisten()
		cancel()
		return fault.Wrap(fault.Unavailable, err, "the peer %q cannot be subscribed: %v", p.id, err)
	}
	s.greet(p)
	s.work.Go(func() {
		ticker := time.NewTicker(s.cfg.GreetInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p.room.sweep()
				s.greet(p)
			case <-ctx.Done():
				return
			}
		}
	})
	return nil
}

// release disconnects a peer that has left. Nothing is published: its presence expires
// at the other runtimes.
func (s *Server) release(p *peer) {
	p.room.mu.Lock()
	cancel, stop := p.detach, p.unsubscribe
	p.detach, p.unsubscribe = nil, nil
	p.room.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	if stop != nil {
		stop()
	}
	p.room.unlisten()
}

// listen subscribes to broadcasts of the channel, once for all of its hosted peers.
func (r *netChannel) listen() error {
	r.subscribing.Lock()
	defer r.subscribing.Unlock()
	if r.listeners++; r.listeners > 1 {
		return nil
	}
	var err error
	r.unsubscribe, err = r.subscribe(func(version int) (string, error) { return wire.BroadcastSubject(version, r.space.name, r.channel) })
	if err != nil {
		r.listeners--
		return fault.Wrap(fault.Unavailable, err, "the channel %q cannot be subscribed: %v", r.channel, err)
	}
	return nil
}

// subscribe subscribes to a subject in each version of the protocol.
func (r *netChannel) subscribe(subjectOf func(version int) (string, error)) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, one := range stops {
			one()
		}
	}
	for _, version := range r.space.s.versions() {
		subject, err := subjectOf(version)
		var one func()
		if err == nil {
			one, err = r.space.s.cfg.Broker.Subscribe(subject, r.receiver(subject))
		}
		if err != nil {
			stop()
			return nil, err
		}
		stops = append(stops, one)
	}
	return stop, nil
}

// unlisten ends the subscription with the last hosted peer.
func (r *netChannel) unlisten() {
	r.subscribing.Lock()
	defer r.subscribing.Unlock()
	if r.listeners--; r.listeners == 0 && r.unsubscribe != nil {
		r.unsubscribe()
		r.unsubscribe = nil
	}
}

// greet announces a hosted peer in each version of the protocol.
func (s *Server) greet(p *peer) {
	for _, version := range s.versions() {
		s.greetAs(p, wire.ProtocolOf(version))
	}
}

func (s *Server) greetAs(p *peer, protocol string) {
	card := p.card()
	body := &wire.GreetBody{Card: *card, Summary: card.Summarize("")}
	e := &wire.Envelope{
		Protocol: protocol, ID: wire.NewID(), Workspace: p.room.space.name, Kind: wire.Greet, Channel: p.room.channel,
		From: p.id, TS: s.cfg.Now().Unix(),
	}
	var err error
	if e.Body, err = body.AppendJSON(nil); err != nil {
		s.cfg.Log.Error("a greeting cannot be written", "peer_id", p.id, "error", err)
		return
	}
	data, err := p.seal(e)
	if err == nil {
		err = s.publish(e, data, p.session)
	}
	if fault.CodeOf(err) == fault.Unavailable && p.signs() && p.key.Load() == nil {
		s.cfg.Log.Warn("a hosted handle does not greet", "peer_id", p.id, "error", err)
	} else if err != nil {
		s.cfg.Log.Debug("a greeting was not published", "peer_id", p.id, "error", err)
	}
}

// publish sends a message of a hosted peer that is not stored, or was stored before.
func (s *Server) publish(e *wire.Envelope, data []byte, session string) error {
	subject, err := e.Subject()
	if err == nil {
		err = s.hand(subject, e.From, e.ID, data)
	}
	if err == nil {
		err = s.flush()
	}
	if err == nil {
		s.audit(about(e, len(data)), sent, session, "")
	}
	return err
}

// hand passes a message of a hosted peer to the broker.
func (s *Server) hand(subject, from, id string, data []byte) error {
	if len(data) > wire.MaxBytes {
		return fault.New(fault.TooLarge, "the envelope has %d bytes; at most %d can be sent", len(data), wire.MaxBytes)
	}
	s.published.add(from, id)
	if err := s.cfg.Broker.Publish(subject, data); fault.CodeOf(err) == fault.TooLarge {
		return err
	} else if err != nil {
		return fault.Wrap(fault.Unavailable, err, "not published: %v", err)
	}
	return nil
}

// flush waits until the broker has what was handed to it.
func (s *Server) flush() error {
	ctx, cancel := context.WithTimeout(s.ctx, publishWithin)
	defer cancel()
	if err := s.cfg.Broker.Flush(ctx); err != nil {
		return fault.Wrap(fault.Unavailable, err, "not published: %v", err)
	}
	return nil
}
