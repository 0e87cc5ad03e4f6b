package api

import (
	"net/http"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// agentBody is an identity as it is shown: what it is, and how it is doing.
type agentBody struct {
	Passport *identity.Passport `json:"passport"`
	Resume   *identity.Resume   `json:"resume"`
	Rule     *identity.Rule     `json:"rule"`
	Skill    *string            `json:"skill_md"`
	Online   bool               `json:"online"`
	Pending  int64              `json:"inbox_depth"`
}

type agentPage struct {
	Agents []agentBody `json:"agents"`
	Next   string      `json:"next"`
}

func (a *API) agentBody(p hub.Profile) agentBody {
	_, online := a.hub.Bound(p.ID())
	return agentBody{
		Passport: p.Passport, Resume: p.Resume, Rule: p.Rule, Skill: p.Skill,
		Online: online, Pending: a.hub.Pending(p.ID()),
	}
}

func (a *API) listAgents(c *call) error {
	limit, err := c.limit(a.cfg.Limits.Page)
	if err != nil {
		return err
	}
	q := c.URL.Query()
	query := hub.AgentQuery{Limit: 1 << 30}
	query.Capability, query.Text = q.Get("capability"), q.Get("query")
	if kind := q.Get("kind"); kind != "" {
		if query.Kind, err = identity.ParseKind(kind); err != nil {
			return err
		}
	}
	after, err := c.page()
	if err != nil {
		return err
	}
	page := agentPage{Agents: []agentBody{}}
	for _, p := range a.hub.Agents(query) {
		if p.ID() <= after {
			continue // ids grow with age, as the list does
		}
		if len(page.Agents) == limit {
			page.Next = page.Agents[limit-1].Passport.AgentID
			break
		}
		page.Agents = append(page.Agents, a.agentBody(p))
	}
	return a.identities(c, page)
}

func (a *API) showAgent(c *call) error {
	p, err := a.hub.Agent(c.PathValue("id"))
	if err != nil {
		return err
	}
	return a.identities(c, a.agentBody(p))
}

// identities answers with what holds identity records, in their own form.
func (a *API) identities(c *call, body any) error {
	data, err := identity.Marshal(body)
	if err != nil {
		return err
	}
	return c.raw(http.StatusOK, data)
}

func (a *API) removeAgent(c *call) error {
	p, err := a.hub.Agent(c.PathValue("id"))
	if err != nil {
		return err
	}
	if err := a.hub.Unregister(c.Context(), p.ID()); err != nil {
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}
