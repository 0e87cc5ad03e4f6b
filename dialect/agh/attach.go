package agh

import (
	"context"
	"time"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
)

// publishWithin bounds how long one message may take to reach the broker.
const publishWithin = 5 * time.Second

// attach connects a hosted peer to the broker: it hears what is broadcast in its
// channel and what is directed to it, and greets at once and then at an
// interval. Without a broker it has nothing to do.
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
	subject, err := wire.PeerSubject(0, p.room.space.name, p.room.channel, p.id)
	if err == nil {
		p.unsubscribe, err = s.cfg.Broker.Subscribe(subject, p.room.receiver(subject))
	}
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

// release disconnects a peer that has left. Nothing is published: absence
// expires.
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

// listen subscribes to what is broadcast in the channel, once for all of its
// hosted peers.
func (r *netChannel) listen() error {
	r.subscribing.Lock()
	defer r.subscribing.Unlock()
	if r.listeners++; r.listeners > 1 {
		return nil
	}
	subject, err := wire.BroadcastSubject(0, r.space.name, r.channel)
	if err == nil {
		r.unsubscribe, err = r.space.s.cfg.Broker.Subscribe(subject, r.receiver(subject))
	}
	if err != nil {
		r.listeners--
		return fault.Wrap(fault.Unavailable, err, "the channel %q cannot be subscribed: %v", r.channel, err)
	}
	return nil
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

// greet announces a hosted peer.
func (s *Server) greet(p *peer) {
	card := p.card()
	body := &wire.GreetBody{Card: *card, Summary: card.Summarize("")}
	e := &wire.Envelope{
		Protocol: wire.Protocol, ID: wire.NewID(), Workspace: p.room.space.name, Kind: wire.Greet, Channel: p.room.channel,
		From: p.id, TS: s.cfg.Now().Unix(),
	}
	var err error
	if e.Body, err = body.AppendJSON(nil); err != nil {
		s.cfg.Log.Error("a greeting cannot be written", "peer_id", p.id, "error", err)
		return
	}
	data, err := e.AppendJSON(nil)
	if err == nil {
		err = s.publish(e, data, p.session)
	}
	if err != nil {
		s.cfg.Log.Debug("a greeting was not published", "peer_id", p.id, "error", err)
	}
}

// publish sends a message of a hosted peer that is not stored, or is stored
// already.
func (s *Server) publish(e *wire.Envelope, data []byte, session string) error {
	if len(data) > wire.MaxBytes {
		return fault.New(fault.TooLarge, "the envelope has %d bytes; at most %d can be sent", len(data), wire.MaxBytes)
	}
	subject, err := e.Subject()
	if err != nil {
		return err
	}
	s.own.add(e.From, e.ID)
	ctx, cancel := context.WithTimeout(s.ctx, publishWithin)
	defer cancel()
	if err := s.cfg.Broker.Publish(ctx, subject, data); err != nil {
		return fault.Wrap(fault.Unavailable, err, "not published: %v", err)
	}
	s.audit(about(e, len(data)), sent, session, "")
	return nil
}
