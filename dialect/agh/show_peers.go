package agh

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
)

// peerShape is a peer as lists show it.
type peerShape struct {
	WorkspaceID   string    `json:"workspace_id,omitempty"`
	SessionID     string    `json:"session_id,omitempty"`
	PeerID        string    `json:"peer_id"`
	DisplayName   string    `json:"display_name,omitempty"`
	Channel       string    `json:"channel"`
	Local         bool      `json:"local"`
	PeerCard      cardShape `json:"peer_card"`
	JoinedAt      string    `json:"joined_at,omitempty"`
	LastSeen      string    `json:"last_seen,omitempty"`
	ExpiresAt     string    `json:"expires_at,omitempty"`
	PresenceState string    `json:"presence_state"`
	LastSeenAge   *int64    `json:"last_seen_age_seconds,omitempty"`
	// Trust is what is known of its identity.
	Trust wire.Trust `json:"trust"`

	recent time.Time // for the order of lists
}

// cardShape is a card with its capabilities and their summaries.
type cardShape struct {
	PeerID       string       `json:"peer_id"`
	DisplayName  string       `json:"display_name,omitempty"`
	Profiles     []string     `json:"profiles_supported"`
	Capabilities []briefShape `json:"capabilities"`
	Artifacts    []string     `json:"artifacts_supported"`
	TrustModes   []string     `json:"trust_modes_supported"`
	// Ext is without the catalog, which is shown above and in the detail.
	Ext jsontext.Value `json:"ext,omitempty"`
}

type briefShape struct {
	ID      string `json:"id"`
	Summary string `json:"summary"`
}

func showCard(c *wire.PeerCard) cardShape {
	shape := cardShape{
		PeerID: c.PeerID, DisplayName: cmp.Or(c.DisplayName, c.PeerID), Profiles: c.Profiles, Capabilities: []briefShape{},
		Artifacts: c.Artifacts, TrustModes: c.TrustModes, Ext: otherExt(c.Ext),
	}
	for _, b := range c.Brief() {
		shape.Capabilities = append(shape.Capabilities, briefShape(b))
	}
	return shape
}

// peerDetail is one peer with all that is known of it.
type peerDetail struct {
	peerShape
	Catalog *catalogDetail `json:"capability_catalog,omitempty"`
	Metrics peerMetrics    `json:"metrics"`
}

type catalogDetail struct {
	Capabilities []jsontext.Value `json:"capabilities"`
}

type peerMetrics struct {
	Sent      int64 `json:"sent"`
	Received  int64 `json:"received"`
	Rejected  int64 `json:"rejected"`
	Delivered int64 `json:"delivered"`
}

func when(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// whenUnix shows seconds; 0 is left out.
func whenUnix(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return when(time.Unix(seconds, 0))
}

// card returns the card of a hosted peer.
func (p *peer) card() *wire.PeerCard {
	c := &wire.PeerCard{
		PeerID: p.id, DisplayName: p.room.space.s.hub.Name(p.agent),
		Profiles: []string{wire.Protocol}, Capabilities: []string{}, Artifacts: []string{string(wire.Capability)}, TrustModes: []string{},
	}
	if p.room.space.s.cfg.Broker != nil {
		c.Profiles = append(c.Profiles, wire.ProfileNATS)
	}
	if err := c.Offer(p.catalog()); err != nil {
		p.room.space.s.cfg.Log.Warn("a catalog cannot be shown", "peer_id", p.id, "error", err)
	}
	if p.signs() {
		c.Profiles = append(c.Profiles, wire.Profile)
		c.TrustModes = []string{string(wire.Verified), string(wire.Unverified)}
	}
	return c
}

func (p *peer) show() peerShape {
	card := p.card()
	trust := wire.Unverified
	if p.signs() {
		trust = wire.Verified
	}
	return peerShape{
		WorkspaceID: p.room.space.name, SessionID: p.session, PeerID: p.id, DisplayName: cmp.Or(card.DisplayName, p.id),
		Channel: p.room.channel, Local: true, PeerCard: showCard(card), JoinedAt: when(p.joinedAt), PresenceState: presenceLocal,
		Trust: trust, recent: p.joinedAt,
	}
}

// present lists the peers of a channel.
func (r *netChannel) present() []peerShape {
	all := []peerShape{}
	for _, p := range r.everyone() {
		all = append(all, p.show())
	}
	for _, p := range r.others() {
		all = append(all, p.show(r))
	}
	sortPeers(all)
	return all
}

// sortPeers sorts local peers first, then by when they were seen, then by name.
func sortPeers(all []peerShape) {
	slices.SortFunc(all, func(a, b peerShape) int {
		if a.Local != b.Local {
			if a.Local {
				return -1
			}
			return 1
		}
		return cmp.Or(b.recent.Compare(a.recent), cmp.Compare(a.DisplayName, b.DisplayName), cmp.Compare(a.PeerID, b.PeerID), cmp.Compare(a.Channel, b.Channel))
	})
}

func (c *call) listPeers(sp *space) error {
	all := []peerShape{}
	for _, r := range sp.list() {
		if only := c.URL.Query().Get("channel"); only != "" && only != r.channel || c.sees(r) != nil {
			continue
		}
		all = append(all, r.present()...)
	}
	sortPeers(all)
	return c.answer(http.StatusOK, map[string]any{"peers": all})
}

func (c *call) showPeer(sp *space) error {
	id := c.PathValue("peer_id")
	for _, r := range sp.list() {
		if c.sees(r) != nil {
			continue
		}
		if other := r.live(id); other != nil {
			return c.answer(http.StatusOK, map[string]any{"peer": other.detail(r)})
		}
		p := r.hosted(id)
		if p == nil {
			continue
		}
		d := peerDetail{peerShape: p.show(), Metrics: p.counts.show()}
		d.WorkspaceID = ""
		if catalog := p.catalog(); catalog != nil {
			d.Catalog = showCatalog(catalog)
		}
		return c.answer(http.StatusOK, map[string]any{"peer": d})
	}
	return fault.New(fault.NotFound, "the workspace %q has no peer %.150q", sp.name, id)
}

func (k *peerCounters) show() peerMetrics {
	return peerMetrics{k.sent.Load(), k.received.Load(), k.rejected.Load(), k.delivered.Load()}
}

type joinBody struct {
	Agent  string `json:"agent"`
	PeerID string `json:"peer_id"`
}

func (c *call) joinPeer() error {
	var body joinBody
	if err := c.read(&body); err != nil {
		return err
	}
	channel := c.PathValue("channel")
	if !wire.ValidChannel(channel) {
		return fault.New(fault.Invalid, "%.100q cannot be a channel; one matches ^[a-z0-9][a-z0-9_-]{0,63}$", channel)
	}
	if body.PeerID != "" {
		if err := c.s.checkPeer(body.PeerID); err != nil {
			return err
		}
	}
	if _, err := wire.PeerID(body.Agent, wire.NewSessionID()); body.PeerID == "" && err != nil {
		return fault.Wrap(fault.Invalid, err, "%v", err)
	}
	if !wire.ValidWorkspace(c.PathValue("workspace_id")) { // before anything is registered
		_, err := c.s.open(c.Context(), c.PathValue("workspace_id"))
		return err
	}
	agent, err := c.s.agentOf(c.Context(), body.Agent, true)
	if err != nil {
		return err
	}
	j, err := c.s.prepare(agent, body.PeerID)
	if err != nil {
		return err
	}
	sp, err := c.s.open(c.Context(), c.PathValue("workspace_id"))
	if err != nil {
		return err
	}
	p, err := sp.admitJoin(c.Context(), channel, j)
	if err != nil {
		return err
	}
	return c.answer(http.StatusCreated, map[string]any{"session_id": p.session, "peer_id": p.id, "channel": p.room.channel, "peer": p.show()})
}

func (c *call) leavePeer(sp *space) error {
	r, err := sp.find(c.PathValue("channel"))
	if err != nil {
		return err
	}
	p := r.hosted(c.PathValue("peer_id"))
	if p == nil {
		return fault.New(fault.NotFound, "no peer %.150q is joined to %q", c.PathValue("peer_id"), r.channel)
	}
	if err := c.owns(p); err != nil {
		return err
	}
	if err := sp.admitLeave(c.Context(), p); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
