package agh

import "github.com/parley-hub/parley/dialect/agh/wire"

// versions returns the versions of the protocol that are enabled.
func (s *Server) versions() []int {
	if s.cfg.V1 {
		return []int{0, 1}
	}
	return []int{0}
}

// handV1 also publishes a broadcast of agh-network/v0 in v1, while a peer is present
// that speaks only v1. It has the same id and another proof, because a proof covers the
// protocol.
func (s *Server) handV1(r *netChannel, data []byte) error {
	if !s.cfg.V1 || !r.someOnlyV1() {
		return nil
	}
	e, err := wire.Decode(data, wire.AsStored)
	if err != nil || e.Version() != 0 {
		return nil // it was already in v1
	}
	p := r.hosted(e.From)
	if p == nil {
		return nil // it has left, so nobody can sign
	}
	e.Protocol, e.Proof = wire.ProtocolOf(1), nil
	again, err := p.seal(e)
	if err != nil {
		s.cfg.Log.Warn("a message is not published in agh-network/v1", "peer_id", p.id, "error", err)
		return nil
	}
	subject, err := e.Subject()
	if err != nil {
		return err
	}
	return s.hand(subject, e.From, e.ID, again)
}

// someOnlyV1 reports whether any present remote peer has greeted in v1 only.
func (r *netChannel) someOnlyV1() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, p := range r.remotes {
		if p.version == 1 && !r.space.s.expired(p.lastSeen) {
			return true
		}
	}
	return false
}
