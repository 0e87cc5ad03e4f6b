package ag2

import (
	"context"
	"slices"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// register creates an identity and binds it here. The answer is sent before any
// delivery to the identity.
func (c *conn) register(ctx context.Context, r *wire.Request) {
	profile, returned, err := c.enrol(ctx, r.Params)
	if err != nil {
		c.respond(r.ID, nil, err)
		return
	}
	c.hold(profile.ID())
	defer c.release(profile.ID())
	if err := c.server.cfg.Hub.Bind(profile.ID(), c); err != nil {
		c.respond(r.ID, nil, err)
		return
	}
	result, err := wire.AppendPassport(nil, profile.Passport)
	c.respond(r.ID, result, err)
	if returned {
		c.inviteBack(ctx, profile.ID())
	}
}

// enrol creates the identity. A human whose name exists and who is bound to no
// other connection reconnects this way, because AG2's human client has no other.
func (c *conn) enrol(ctx context.Context, raw []byte) (profile hub.Profile, returned bool, err error) {
	var p wire.RegisterParams
	if err := wire.DecodeParams(raw, &p); err != nil {
		return hub.Profile{}, false, err
	}
	if p.Passport == nil {
		return hub.Profile{}, false, fault.New(fault.Invalid, "'passport' must be an object")
	}
	profile, err = c.returning(ctx, p.Passport)
	returned = profile.Passport != nil
	if err == nil && !returned {
		if err := c.roomFor(""); err != nil {
			return hub.Profile{}, false, err
		}
		profile, err = c.server.cfg.Hub.Register(ctx, hub.Registration{Passport: p.Passport, Resume: p.Resume, Rule: p.Rule, Skill: p.Skill})
	}
	if err != nil {
		c.failed(p.Passport.Name, err)
		return hub.Profile{}, false, err
	}
	return profile, returned, c.adopt(profile.Passport, p.Passport.Auth.Scheme, p.Passport.Auth.Claim)
}

// inviteBack sends a reconnecting human the invitations that are still open,
// because its client cannot ask for a replay.
func (c *conn) inviteBack(ctx context.Context, agent string) {
	h := c.server.cfg.Hub
	waiting, _, err := h.Channels(ctx, hub.ListOptions{Agent: agent, Open: true, Invited: agent})
	if err != nil {
		return // the creator's wait has a time-out
	}
	for _, m := range waiting {
		for e, err := range h.Log(ctx, m.ID, 0, 0) {
			if err != nil {
				break
			}
			if e.Type != envelope.TypeInvite || !slices.Contains(e.Audience, agent) {
				continue
			}
			i, _, err := c.notice(&hub.Notice{Envelope: e, Channel: m, Recipient: agent, Replayed: true, Shared: &hub.Shared{}})
			if err == nil && i.Tail != nil {
				c.remind(agent, m.ID, i, invitations)
			}
			break
		}
	}
}

// returning finds the human that reconnects; without a passport there is none.
func (c *conn) returning(ctx context.Context, p *identity.Passport) (hub.Profile, error) {
	h := c.server.cfg.Hub
	if !p.Kind.Is(identity.Human) {
		return hub.Profile{}, nil
	}
	id, ok := h.FindAgent(p.Name)
	if !ok {
		return hub.Profile{}, nil
	}
	known, err := h.AgentByID(id)
	if err != nil || !known.Passport.Kind.Is(identity.Human) {
		return hub.Profile{}, nil
	}
	if _, bound := h.Bound(id); bound {
		return hub.Profile{}, nil
	}
	return h.Authenticate(ctx, p.Name, p.Auth.Scheme, p.Auth.Claim)
}

func (c *conn) getAgent(_ context.Context, p wire.NameOrID) ([]byte, error) {
	profile, err := c.server.cfg.Hub.Agent(p.NameOrID)
	if err != nil {
		return nil, err
	}
	return wire.AppendPassport(nil, profile.Passport)
}

func (c *conn) getResume(ctx context.Context, p wire.ByAgent) ([]byte, error) {
	details, err := c.server.cfg.Hub.Details(ctx, p.Agent)
	if err != nil {
		return nil, err
	}
	return wire.AppendResume(nil, details.Resume)
}

func (c *conn) getSkill(ctx context.Context, p wire.ByAgent) ([]byte, error) {
	details, err := c.server.cfg.Hub.Details(ctx, p.Agent)
	if fault.CodeOf(err) == fault.NotFound {
		return nil, nil
	}
	if err != nil || details.Skill == nil {
		return nil, err
	}
	return wire.AppendString(nil, *details.Skill), nil
}

func (c *conn) getRule(_ context.Context, p wire.ByAgent) ([]byte, error) {
	profile, err := c.server.cfg.Hub.AgentByID(p.Agent)
	if err != nil {
		return nil, err
	}
	return wire.AppendRule(nil, profile.Rule)
}

func (c *conn) findAgentID(_ context.Context, p wire.ByName) ([]byte, error) {
	id, ok := c.server.cfg.Hub.FindAgent(p.Name)
	if !ok {
		return nil, nil
	}
	return wire.AppendString(nil, id), nil
}

func (c *conn) namesFor(_ context.Context, p wire.NamesForParams) ([]byte, error) {
	names := make(map[string]string, len(p.Agents))
	for _, id := range p.Agents {
		names[id] = c.server.cfg.Hub.Name(id)
	}
	return wire.AppendTextMap(nil, names)
}

// listAgents lists identities, as far as they fit a frame.
func (c *conn) listAgents(ctx context.Context, p wire.ListAgentsParams) ([]byte, error) {
	limit := limitOf(p.Limit)
	profiles, err := c.server.cfg.Hub.Agents(ctx, hub.AgentQuery{
		Query:  identity.Query{Capability: p.Capability, Text: p.Query, Kind: p.Kind},
		ByName: p.SortBy == "name",
		Limit:  limit,
	})
	if err != nil {
		return nil, err
	}
	list, _, err := gather(limit,
		func(int, string) ([]hub.Profile, string, error) { return profiles, "", nil },
		func(p hub.Profile) ([]byte, error) { return wire.AppendPassport(nil, p.Passport) })
	if err != nil {
		return nil, err
	}
	return joined(list), nil
}

func (c *conn) setResume(ctx context.Context, p wire.SetResumeParams) ([]byte, error) {
	if err := c.actsFor(p.Agent); err != nil {
		return nil, err
	}
	if p.Resume == nil {
		return nil, fault.New(fault.Invalid, "'resume' must be an object")
	}
	return nil, c.server.cfg.Hub.SetResume(ctx, p.Agent, p.Resume)
}

func (c *conn) setSkill(ctx context.Context, p wire.SetSkillParams) ([]byte, error) {
	if err := c.actsFor(p.Agent); err != nil {
		return nil, err
	}
	return nil, c.server.cfg.Hub.SetSkill(ctx, p.Agent, p.Skill)
}

func (c *conn) setRule(ctx context.Context, p wire.SetRuleParams) ([]byte, error) {
	if err := c.actsFor(p.Agent); err != nil {
		return nil, err
	}
	if p.Rule == nil {
		return nil, fault.New(fault.Invalid, "'rule' must be an object")
	}
	return nil, c.server.cfg.Hub.SetRule(ctx, p.Agent, p.Rule)
}

// unregister removes an identity of this connection, or one that is not bound and
// that this connection could take over without a proof.
func (c *conn) unregister(ctx context.Context, p wire.ByAgent) ([]byte, error) {
	h := c.server.cfg.Hub
	profile, err := h.AgentByID(p.Agent)
	if err != nil {
		return nil, err
	}
	_, taken := h.Bound(p.Agent)
	if !taken {
		_, err := h.Authenticate(ctx, profile.Passport.Name, identity.SchemeNone, nil)
		taken = err != nil
	}
	if taken {
		if err := c.bound(p.Agent); err != nil {
			return nil, err
		}
	}
	if err := h.Unregister(ctx, p.Agent); err != nil {
		return nil, err
	}
	c.disown(p.Agent)
	return nil, nil
}
