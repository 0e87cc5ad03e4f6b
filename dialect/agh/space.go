package agh

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/adapter/room"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// space is one workspace: its channels and their joined peers. Everything else is in
// the log.
type space struct {
	s    *Server
	name string
	home hub.Home

	mu       sync.RWMutex
	rooms    map[string]*netChannel // by channel
	sessions map[string]*peer       // of hosted peers

	trust    atomic.Pointer[trustPolicy] // nil: the default
	trusting sync.Mutex                  // held while the policy is changed
}

// netChannel is a channel of a workspace.
type netChannel struct {
	space   *space
	channel string
	id      string // of the hub's channel

	mu    sync.RWMutex
	row   room.Row
	peers map[string]*peer
	// remotes are the peers of other runtimes that are present.
	remotes map[string]*remote
	known   int       // bytes of their cards and catalogs
	swept   time.Time // when silent ones were last removed
	tally   *tally    // of its conversations; nil: not counted yet
	// stored grows with each record, so that counting notices a record that is added
	// meanwhile.
	stored   int
	counting sync.Mutex // held while the messages are counted
	bridging sync.Mutex // held while an identity is joined to speak to a peer

	subscribing sync.Mutex
	listeners   int    // hosted peers that receive broadcasts
	unsubscribe func() // ends the subscriptions
}

// peer is a hosted peer: an identity that is joined to a channel.
type peer struct {
	room     *netChannel
	id       string
	session  string
	agent    string // the identity
	joinedAt time.Time
	queue    *queue
	counts   peerCounters
	key      atomic.Pointer[wire.Key] // of a handle, once it was needed
	// documented says that the peer's progress was written; the ledger's lock guards
	// it.
	documented bool
	// detach and unsubscribe end the connection to the broker; the room's lock
	// guards them.
	detach, unsubscribe func()
}

// room returns a channel of the workspace, and adds it if it is not known.
func (sp *space) room(channel, id string) *netChannel {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	r := sp.rooms[channel]
	if r == nil {
		r = &netChannel{space: sp, channel: channel, id: id, peers: map[string]*peer{}, remotes: map[string]*remote{}}
		r.row.Channel = channel
		sp.rooms[channel] = r
	}
	return r
}

// find returns a channel that exists.
func (sp *space) find(channel string) (*netChannel, error) {
	sp.mu.RLock()
	defer sp.mu.RUnlock()
	if r := sp.rooms[channel]; r != nil {
		return r, nil
	}
	return nil, fault.New(fault.NotFound, "the workspace %q has no channel %.100q", sp.name, channel)
}

// list returns the channels by name.
func (sp *space) list() []*netChannel {
	sp.mu.RLock()
	defer sp.mu.RUnlock()
	all := make([]*netChannel, 0, len(sp.rooms))
	for _, r := range sp.rooms {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *netChannel) int { return strings.Compare(a.channel, b.channel) })
	return all
}

// session returns the hosted peer of a session.
func (sp *space) session(id string) (*peer, error) {
	sp.mu.RLock()
	defer sp.mu.RUnlock()
	if p := sp.sessions[id]; p != nil {
		return p, nil
	}
	return nil, fault.New(fault.NotFound, "the workspace %q has no session %.100q; join a peer first", sp.name, id)
}

// join adds a joined peer, unless it is known. A remote peer of the same name is no
// longer present: the hosted one replaces it.
func (sp *space) join(r *netChannel, id string, joined room.Peer) *peer {
	p, shadows := sp.host(r, id, joined)
	if shadows {
		r.left([]string{id})
	}
	return p
}

func (sp *space) host(r *netChannel, id string, joined room.Peer) (p *peer, shadows bool) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.peers[id]; p != nil {
		return p, false
	}
	shadows = r.remotes[id] != nil
	r.forgetRemote(id)
	p = &peer{
		room: r, id: id, session: joined.Session, agent: joined.Agent, joinedAt: time.Unix(joined.JoinedAt, 0).UTC(),
	}
	p.queue = newQueue(p, sp.s.cfg.QueueDepth)
	r.peers[id], sp.sessions[joined.Session] = p, p
	return p, shadows
}

// leave removes a peer that has left, and returns it; nil: it was not there.
func (sp *space) leave(r *netChannel, id string) *peer {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.peers[id]
	if p == nil {
		return nil
	}
	delete(r.peers, id)
	delete(sp.sessions, p.session)
	p.queue.close()
	sp.s.ledger.forget(p)
	return p
}

// describe sets what the room's row says.
func (r *netChannel) describe(row room.Row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.row = row
}

// about returns what the room's row says.
func (r *netChannel) about() room.Row {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.row
}

// hosted returns a peer that is joined here; nil: there is none.
func (r *netChannel) hosted(id string) *peer {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.peers[id]
}

// everyone returns the hosted peers by session.
func (r *netChannel) everyone() []*peer {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]*peer, 0, len(r.peers))
	for _, p := range r.peers {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *peer) int { return strings.Compare(a.session, b.session) })
	return all
}

// has reports whether an identity is joined here.
func (r *netChannel) has(agent string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, p := range r.peers {
		if p.agent == agent {
			return true
		}
	}
	return false
}
