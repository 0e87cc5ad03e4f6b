package agh

import (
	"strings"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// signs reports whether the peer is a handle, which signs its envelopes.
func (p *peer) signs() bool { return strings.Contains(p.id, "@") }

// seal encodes an outgoing envelope of the peer; a handle signs it.
func (p *peer) seal(e *wire.Envelope) ([]byte, error) {
	data, err := e.AppendJSON(nil)
	if err != nil || !p.signs() {
		return data, err
	}
	key := p.key.Load()
	if key == nil {
		if key, err = p.room.space.s.keyOf(p.id); err != nil {
			return nil, err
		}
		p.key.Store(key)
	}
	return key.Sign(data)
}

// checkExt refuses extension keys without a namespace if the trust profile applies.
func (p *peer) checkExt(ext []byte) error {
	if !p.signs() {
		return nil
	}
	for name := range jsonscan.Members(ext) {
		if prefix, key, ok := strings.Cut(string(name), "."); !ok || prefix == "" || key == "" {
			return fault.New(fault.Invalid, "`ext` has the key %.100q; a peer that signs uses keys with a namespace, such as acme.priority", name)
		}
	}
	return nil
}

// keyOf finds the key that proves a handle.
func (s *Server) keyOf(handle string) (*wire.Key, error) {
	if s.cfg.Key == nil {
		return nil, fault.New(fault.Unavailable, "this hub has no keys, so it cannot sign for %q", handle)
	}
	key, err := s.cfg.Key(handle)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the hub cannot sign for %q: %v", handle, err)
	}
	if key.Handle() != handle {
		return nil, fault.New(fault.Unavailable, "the hub cannot sign for %q: the key that was found belongs to %q", handle, key.Handle())
	}
	return key, nil
}
