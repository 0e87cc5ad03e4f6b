package agh

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// adopted are the remote peers whom the hub knows, the last used at the front.
// Names of sessions come and go, and anybody can make them up: whoever was not
// heard of for longest is forgotten, and is known again with the next message.
type adopted struct {
	mu    sync.Mutex
	order list.List
	at    map[string]*list.Element
}

// adopt makes a remote peer somebody whom the hub knows, and returns its id.
func (sp *space) adopt(peer string) (actor, error) {
	s, id := sp.s, remoteID(sp.name, peer)
	s.adopted.mu.Lock()
	defer s.adopted.mu.Unlock()
	if s.adopted.use(id) {
		if _, err := s.hub.AgentByID(id); err == nil {
			return actor{peer, id}, nil
		}
	}
	for s.adopted.order.Len() > s.cfg.Limits.Remotes {
		s.hub.Disown(s.adopted.drop())
	}
	_, err := s.hub.Adopt(s.ctx, id, hub.Registration{
		Passport: &identity.Passport{Name: "agh/" + sp.name + "/" + clone(peer), Auth: identity.Auth{Scheme: identity.SchemeNone}},
	})
	return actor{peer, id}, err
}

// use moves an identity to the front, and reports whether it was there.
func (a *adopted) use(id string) bool {
	if e := a.at[id]; e != nil {
		a.order.MoveToFront(e)
		return true
	}
	if a.at == nil {
		a.at = map[string]*list.Element{}
	}
	a.at[id] = a.order.PushFront(id)
	return false
}

// drop takes the last one away.
func (a *adopted) drop() string {
	last := a.order.Back()
	id, _ := a.order.Remove(last).(string)
	delete(a.at, id)
	return id
}

// remoteID is the identity of a remote peer, derived from its name.
func remoteID(workspace, peer string) string {
	sum := sha256.Sum256([]byte("agh-remote\x00" + workspace + "\x00" + peer))
	return hex.EncodeToString(sum[:16])
}
