package agh

import (
	"cmp"
	"slices"
	"time"

	"github.com/parley-hub/parley/dialect/agh/bridge"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
)

// remote is a peer of another runtime, as it last introduced itself.
type remote struct {
	card     *wire.PeerCard
	catalog  []wire.CapabilityDoc // nil: not known
	joinedAt time.Time
	lastSeen time.Time
	greeted  bool // it has greeted

	cardSize, catalogSize int
	trust                 wire.Trust
	keyID                 string // proved by its last introduction
	version               int    // of the protocol; 0 if it speaks both
	counts                *peerCounters
}

// Presence states.
const (
	presenceLocal    = "local"
	presenceActive   = "active"
	presenceInactive = "inactive"
	presenceExpired  = "expired"
)

// PresenceOf classifies a remote peer by how long ago it was seen.
func PresenceOf(lastSeen, now time.Time, interval time.Duration) string {
	switch age := max(now.Sub(lastSeen), 0); {
	case age <= interval:
		return presenceActive
	case age <= 2*interval:
		return presenceInactive
	}
	return presenceExpired
}

// expired reports whether a peer that was last seen then counts as gone.
func (s *Server) expired(seen time.Time) bool {
	return !s.cfg.Now().Before(seen.Add(2 * s.cfg.GreetInterval))
}

// sweep removes the remote peers of a channel that were silent for too long.
func (r *netChannel) sweep() {
	s := r.space.s
	r.mu.Lock()
	r.swept = s.cfg.Now()
	var gone []string
	for id, p := range r.remotes {
		if s.expired(p.lastSeen) {
			r.forgetRemote(id)
			gone = append(gone, id)
		}
	}
	r.mu.Unlock()
	r.left(gone)
}

// sweepEvery bounds how often greetings start a sweep of a channel, because greetings
// may come as a flood.
const sweepEvery = time.Second

// sweepSeldom is sweep, if the last one is some time ago.
func (r *netChannel) sweepSeldom() {
	now := r.space.s.cfg.Now()
	r.mu.RLock()
	due := now.Sub(r.swept) >= sweepEvery
	r.mu.RUnlock()
	if due {
		r.sweep()
	}
}

// forgetRemote removes a remote peer. The channel is locked.
func (r *netChannel) forgetRemote(id string) {
	if p := r.remotes[id]; p != nil {
		r.known -= p.size()
		delete(r.remotes, id)
	}
}

// knownEach bounds the average size of what remote peers say of themselves: as many
// peers as agh.limits.remotes allows share the total.
const knownEach = 4 << 10

// size returns about how much memory a remote peer takes.
func (p *remote) size() int { return p.cardSize + p.catalogSize }

// left reports that remote peers are gone.
func (r *netChannel) left(gone []string) {
	slices.Sort(gone)
	for _, id := range gone {
		r.space.s.event(Event{Name: PeerLeft, Workspace: r.space.name, Channel: r.channel, Peer: id})
		r.space.s.bridge.Went(bridge.Peer{Workspace: r.space.name, ID: id})
	}
}

// seen records that a remote peer introduced itself. The name of a hosted peer is never
// a remote one's.
func (r *netChannel) seen(card *wire.PeerCard, e *wire.Envelope, trust wire.Trust) {
	r.sweepSeldom()
	s := r.space.s
	now := s.cfg.Now()
	id := clone(card.PeerID)
	r.mu.Lock()
	if r.peers[id] != nil {
		r.forgetRemote(id)
		r.mu.Unlock()
		return
	}
	p := r.remotes[id]
	var gone []string
	if p != nil && s.expired(p.lastSeen) {
		r.forgetRemote(id)
		gone, p = []string{id}, nil
	}
	if p == nil {
		p = &remote{joinedAt: now, version: e.Version(), counts: &peerCounters{}}
	}
	joined := e.Kind == wire.Greet && !p.greeted
	next := &remote{card: cloneCard(card), joinedAt: p.joinedAt, lastSeen: now, greeted: p.greeted || e.Kind == wire.Greet, trust: trust, version: min(p.version, e.Version()), counts: p.counts}
	if trust == wire.Verified {
		next.keyID = clone(wire.ProofKeyID(e))
	}
	if p.card != nil && slices.Equal(p.card.Capabilities, card.Capabilities) {
		next.catalog, next.catalogSize = p.catalog, p.catalogSize
	}
	if catalog, ok := e.Catalog(); ok && card.Aligned(catalog) {
		next.catalog, next.catalogSize = catalog, len(e.Ext)
	}
	next.cardSize = len(e.Body)
	before := r.remotes[id]
	known := r.known + next.size()
	if before != nil {
		known -= before.size()
	}
	fits := known <= s.cfg.Limits.Remotes*knownEach && (before != nil || len(r.remotes) < s.cfg.Limits.Remotes)
	if fits {
		r.remotes[id], r.known = next, known
	}
	r.mu.Unlock()
	r.left(gone)
	if !fits {
		s.counts.dropped.Add(1)
		return
	}
	if joined {
		s.event(Event{Name: PeerJoined, Workspace: r.space.name, Channel: r.channel, Peer: id, LastSeen: now})
	}
	if s.outbox != nil {
		s.outbox.greeted(r, id)
	}
	s.bridge.Came(bridge.Peer{Workspace: r.space.name, ID: id})
}

// cloneCard copies a card out of the message it shares memory with.
func cloneCard(c *wire.PeerCard) *wire.PeerCard {
	all := func(list []string) []string {
		out := make([]string, len(list))
		for i, s := range list {
			out[i] = clone(s)
		}
		return out
	}
	return &wire.PeerCard{
		PeerID: clone(c.PeerID), DisplayName: clone(c.DisplayName), Profiles: all(c.Profiles), Capabilities: all(c.Capabilities),
		Artifacts: all(c.Artifacts), TrustModes: all(c.TrustModes), Ext: slices.Clone(c.Ext),
	}
}

// live returns a remote peer that is present; nil: there is none.
func (r *netChannel) live(id string) *remote {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if p := r.remotes[id]; p != nil && !r.space.s.expired(p.lastSeen) {
		return p
	}
	return nil
}

// others lists the remote peers that are present.
func (r *netChannel) others() []*remote {
	r.sweep()
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]*remote, 0, len(r.remotes))
	for _, p := range r.remotes {
		all = append(all, p)
	}
	return all
}

// target returns the addressed peer; an empty id is everyone.
func (r *netChannel) target(peer string) (actor, error) {
	if peer == "" {
		return actor{}, nil
	}
	if p := r.hosted(peer); p != nil {
		return actor{p.id, p.agent}, nil
	}
	if r.live(peer) != nil {
		return r.space.adopt(peer)
	}
	return actor{}, fault.New(fault.NotFound, "target not found: no peer %.150q is present in %q", peer, r.channel)
}

func (p *remote) show(r *netChannel) peerShape {
	s := r.space.s
	now := s.cfg.Now()
	age := int64(max(now.Sub(p.lastSeen), 0) / time.Second)
	return peerShape{
		WorkspaceID: r.space.name, PeerID: p.card.PeerID, DisplayName: cmp.Or(p.card.DisplayName, p.card.PeerID), Channel: r.channel,
		PeerCard: showCard(p.card), JoinedAt: when(p.joinedAt), LastSeen: when(p.lastSeen), ExpiresAt: when(p.lastSeen.Add(2 * s.cfg.GreetInterval)),
		PresenceState: PresenceOf(p.lastSeen, now, s.cfg.GreetInterval), LastSeenAge: &age, Trust: p.trust, recent: p.lastSeen,
	}
}

// remoteDetail is a remote peer in detail.
type remoteDetail struct {
	peerDetail
	Local *bool `json:"local,omitempty"` // always absent: hides the member of peerShape
}

func (p *remote) detail(r *netChannel) any {
	d := remoteDetail{peerDetail: peerDetail{peerShape: p.show(r), Metrics: p.counts.show()}}
	d.WorkspaceID = ""
	if p.catalog != nil {
		d.Catalog = showCatalog(p.catalog)
	}
	return d
}
