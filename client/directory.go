package client

import (
	"cmp"
	"context"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/identity"
)

// Self returns the identity that the link acts for.
func (i *Identity) Self() agent.Identity { return agent.Identity{ID: i.id, Name: i.passport.Name} }

// Names resolves ids; an unknown id maps to itself.
func (i *Identity) Names(ctx context.Context, ids []string) (map[string]string, error) {
	names := map[string]string{}
	err := i.client.fetch(ctx, wire.NamesFor, wire.NamesForParams{Agents: ids}, &names)
	return names, err
}

// Passport finds an identity by name, or else by id.
func (c *Client) Passport(ctx context.Context, nameOrID string) (*identity.Passport, error) {
	return get[identity.Passport](ctx, c, wire.GetAgent, wire.NameOrID{NameOrID: nameOrID})
}

// Resume returns an identity's resume.
func (c *Client) Resume(ctx context.Context, agentID string) (*identity.Resume, error) {
	return get[identity.Resume](ctx, c, wire.GetResume, wire.ByAgent{Agent: agentID})
}

// Rule returns an identity's rule.
func (c *Client) Rule(ctx context.Context, agentID string) (*identity.Rule, error) {
	return get[identity.Rule](ctx, c, wire.GetRule, wire.ByAgent{Agent: agentID})
}

// SetResume replaces the identity's resume.
func (i *Identity) SetResume(ctx context.Context, r *identity.Resume) error {
	return i.client.fetch(ctx, wire.SetResume, wire.SetResumeParams{Agent: i.id, Resume: r}, nil)
}

// SetRule replaces the identity's rule.
func (i *Identity) SetRule(ctx context.Context, r *identity.Rule) error {
	return i.client.fetch(ctx, wire.SetRule, wire.SetRuleParams{Agent: i.id, Rule: r}, nil)
}

// SetSkill stores the identity's skill document; nil removes it.
func (i *Identity) SetSkill(ctx context.Context, text *string) error {
	return i.client.fetch(ctx, wire.SetSkill, wire.SetSkillParams{Agent: i.id, Skill: text}, nil)
}

// Peer finds an identity by name, or else by id.
func (i *Identity) Peer(ctx context.Context, nameOrID string) (*agent.Peer, error) {
	p, err := i.client.Passport(ctx, nameOrID)
	if err != nil {
		return nil, err
	}
	return i.peer(ctx, p)
}

// Peers lists identities in the order they registered.
func (i *Identity) Peers(ctx context.Context, q agent.PeerQuery) ([]*agent.Peer, error) {
	limit := wire.Index(1 << 20)
	var passports []*identity.Passport
	params := wire.ListAgentsParams{Capability: q.Capability, Query: q.Text, Limit: &limit}
	if err := i.client.fetch(ctx, wire.ListAgents, params, &passports); err != nil {
		return nil, err
	}
	peers := make([]*agent.Peer, 0, len(passports))
	for _, p := range passports {
		peer, err := i.peer(ctx, p)
		if err != nil {
			return nil, err
		}
		peers = append(peers, peer)
	}
	return peers, nil
}

func (i *Identity) peer(ctx context.Context, p *identity.Passport) (*agent.Peer, error) {
	r, err := i.client.Resume(ctx, p.AgentID)
	if err != nil {
		return nil, err
	}
	peer := &agent.Peer{
		ID: p.AgentID, Name: p.Name, Owner: p.Owner, Provider: deref(p.Provider), Model: deref(p.Model),
		Summary: r.Summary, Capabilities: r.ClaimedCapabilities, Domains: r.Domains,
	}
	if p.Cost != nil {
		peer.Cost = &agent.Cost{
			InputPerMTok: string(p.Cost.InputPerMTok), OutputPerMTok: string(p.Cost.OutputPerMTok), LatencyTier: deref(p.Cost.LatencyTier),
		}
	}
	if len(r.Observed) > 0 {
		peer.Observed = make(map[string]agent.Observed, len(r.Observed))
		for capability, s := range r.Observed {
			peer.Observed[capability] = agent.Observed{N: s.N, Completed: s.Completed, Failed: s.Failed, Expired: s.Expired}
		}
	}
	return peer, nil
}

func deref(s *string) string { return *cmp.Or(s, new(string)) }

// Skill returns an identity's skill document, or the one made for it if it
// stored none.
func (i *Identity) Skill(ctx context.Context, agentID string) (string, error) {
	var text *string
	if err := i.client.fetch(ctx, wire.GetSkill, wire.ByAgent{Agent: agentID}, &text); err != nil {
		return "", err
	}
	if text != nil {
		return *text, nil
	}
	p, err := i.client.Passport(ctx, agentID)
	if err != nil {
		return "", err
	}
	r, err := i.client.Resume(ctx, p.AgentID)
	if err != nil {
		return "", err
	}
	return identity.FallbackSkill(p, r), nil
}
