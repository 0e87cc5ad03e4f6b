package agh

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// channelShape is a channel in a list. It counts public messages only.
type channelShape struct {
	Channel                    string `json:"channel"`
	WorkspaceID                string `json:"workspace_id,omitempty"`
	Purpose                    string `json:"purpose,omitempty"`
	CreatedBy                  string `json:"created_by,omitempty"`
	CreatedAt                  string `json:"created_at,omitempty"`
	PeerCount                  int    `json:"peer_count"`
	LocalPeerCount             int    `json:"local_peer_count,omitzero"`
	RemotePeerCount            int    `json:"remote_peer_count,omitzero"`
	SessionCount               int    `json:"session_count,omitzero"`
	MessageCount               int    `json:"message_count,omitzero"`
	PresenceCount              int    `json:"presence_count,omitzero"`
	HistoricalParticipantCount int    `json:"historical_participant_count,omitzero"`
	LastActivityAt             string `json:"last_activity_at,omitempty"`
	LastPresenceAt             string `json:"last_presence_at,omitempty"`
	LastMessagePreview         string `json:"last_message_preview,omitempty"`

	recent int64
}

// channelDetail is one channel with its peers.
type channelDetail struct {
	channelShape
	KindCounts []kindCount    `json:"kind_counts"`
	Sessions   []sessionShape `json:"sessions"`
	Peers      []peerShape    `json:"peers"`
}

type kindCount struct {
	Kind  wire.Kind `json:"kind"`
	Count int       `json:"count"`
}

type sessionShape struct {
	SessionID string `json:"session_id"`
	PeerID    string `json:"peer_id"`
	AgentName string `json:"agent_name"`
}

func (c *call) describe(r *netChannel) (channelDetail, error) {
	t, err := r.counts(c.Context())
	if err != nil {
		return channelDetail{}, err
	}
	last, err := r.lastSaid(c.Context(), &t)
	if err != nil {
		return channelDetail{}, err
	}
	row := r.about()
	d := channelDetail{channelShape: channelShape{
		Channel: r.channel, WorkspaceID: r.space.name, Purpose: row.Purpose, CreatedAt: whenUnix(row.CreatedAt),
		MessageCount: t.messages, HistoricalParticipantCount: t.participants, LastMessagePreview: last,
		LastActivityAt: whenUnix(t.lastAt), recent: t.lastAt,
	}, KindCounts: []kindCount{}, Sessions: []sessionShape{}}
	if row.CreatedBy != "" {
		d.CreatedBy = cmp.Or(c.s.hub.Name(row.CreatedBy), row.CreatedBy)
	}
	for _, k := range wire.Kinds() {
		if n := t.kinds[k]; n > 0 {
			d.KindCounts = append(d.KindCounts, kindCount{k, n})
		}
	}
	d.Peers = r.present()
	for _, p := range r.everyone() {
		d.Sessions = append(d.Sessions, sessionShape{p.session, p.id, c.s.hub.Name(p.agent)})
	}
	d.PeerCount, d.LocalPeerCount, d.SessionCount = len(d.Peers), len(d.Sessions), len(d.Sessions)
	d.RemotePeerCount, d.PresenceCount = len(d.Peers)-len(d.Sessions), len(d.Peers)
	var seen time.Time
	for _, p := range d.Peers {
		if at := p.recent.Unix(); !p.recent.IsZero() && at > d.recent {
			d.recent = at
		}
		if !p.Local && p.recent.After(seen) {
			seen, d.LastPresenceAt = p.recent, p.LastSeen
		}
	}
	return d, nil
}

func (c *call) listChannels(sp *space) error {
	all := []channelShape{}
	for _, r := range sp.list() {
		if c.sees(r) != nil {
			continue
		}
		d, err := c.describe(r)
		if err != nil {
			return err
		}
		all = append(all, d.channelShape)
	}
	slices.SortStableFunc(all, func(a, b channelShape) int { return cmp.Compare(b.recent, a.recent) })
	return c.answer(http.StatusOK, map[string]any{"channels": all})
}

func (c *call) showChannel(r *netChannel) error {
	d, err := c.describe(r)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, map[string]any{"channel": d})
}

type createBody struct {
	Channel     string   `json:"channel"`
	Purpose     string   `json:"purpose"`
	AgentNames  []string `json:"agent_names"`
	WorkspaceID string   `json:"workspace_id"`
}

func (c *call) createChannel() error {
	var body createBody
	if err := c.read(&body); err != nil {
		return err
	}
	name := c.PathValue("workspace_id")
	switch {
	case body.WorkspaceID != "" && body.WorkspaceID != name:
		return fault.New(fault.Invalid, "`workspace_id` is %.100q, and the path names %.100q; give the same, or leave it out", body.WorkspaceID, name)
	case !wire.ValidChannel(body.Channel):
		return fault.New(fault.Invalid, "`channel` %.100q cannot be a channel; one matches ^[a-z0-9][a-z0-9_-]{0,63}$", body.Channel)
	case strings.TrimSpace(body.Purpose) == "":
		return fault.New(fault.Invalid, "`purpose` is missing; say what the channel is for")
	case len(body.AgentNames) == 0:
		return fault.New(fault.Invalid, "`agent_names` is empty; name at least one agent")
	}
	for i, n := range body.AgentNames {
		if slices.Contains(body.AgentNames[:i], n) {
			return fault.New(fault.Invalid, "`agent_names` has %.100q twice; name it once", n)
		}
		if _, err := c.s.agentOf(c.Context(), n, false); err != nil {
			return err
		}
	}
	sp, err := c.s.open(c.Context(), name)
	if err != nil {
		return err
	}
	r, err := c.s.createChannel(c.Context(), sp, body.Channel, body.Purpose, body.AgentNames)
	if err != nil {
		return err
	}
	d, err := c.describe(r)
	if err != nil {
		return err
	}
	return c.answer(http.StatusCreated, map[string]any{"channel": d})
}

func (c *call) deleteChannel(r *netChannel) error {
	if err := c.s.hub.Delete(c.Context(), r.id, &hub.Caller{Role: hub.RoleOperator, Key: c.who.Key}); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
