package agh

import (
	"container/list"
	"sync"

	"github.com/parley-hub/parley/dialect/agh/bridge"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// adopted are the remote peers that the hub knows, most recently used first. Anybody
// can invent names of sessions, so the least recently used peer is removed first; its
// next message adds it again.
type adopted struct {
	mu    sync.Mutex
	order list.List
	at    map[string]*list.Element
}

// adopt makes a remote peer known to the hub, and returns its identity.
func (sp *space) adopt(peer string) (actor, error) {
	s, id := sp.s, wire.RemoteIdentity(sp.name, peer)
	s.adopted.mu.Lock()
	defer s.adopted.mu.Unlock()
	if _, err := s.hub.AgentByID(id); err == nil {
		s.adopted.used(id)
		return actor{peer, id}, nil // it may be registered
	}
	s.adopted.add(id)
	for s.adopted.order.Len() > s.cfg.Limits.Remotes {
		s.hub.Disown(s.adopted.drop())
	}
	_, err := s.hub.Adopt(s.ctx, id, hub.Registration{
		// A channel may make the identity permanent; then no client can prove to be it.
		Passport: &identity.Passport{Name: bridge.Peer{Workspace: sp.name, ID: clone(peer)}.Name(), Auth: identity.Auth{Scheme: identity.SchemeAPIKey}},
	})
	return actor{peer, id}, err
}

// used moves an identity to the front, if it is among them.
func (a *adopted) used(id string) {
	if e := a.at[id]; e != nil {
		a.order.MoveToFront(e)
	}
}

// add puts an identity to the front.
func (a *adopted) add(id string) {
	if a.at == nil {
		a.at = map[string]*list.Element{}
	}
	if e := a.at[id]; e != nil {
		a.order.MoveToFront(e)
		return
	}
	a.at[id] = a.order.PushFront(id)
}

// drop removes the least recently used one.
func (a *adopted) drop() string {
	last := a.order.Back()
	id, _ := a.order.Remove(last).(string)
	delete(a.at, id)
	return id
}
