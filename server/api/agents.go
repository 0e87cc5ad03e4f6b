package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// agentBody is an identity as it is shown: what it is, and how it is doing.
type agentBody struct {
	Passport *identity.Passport `json:"passport"`
	Resume   *identity.Resume   `json:"resume"`
	Rule     *identity.Rule     `json:"rule"`
	Ceiling  *identity.Ceiling  `json:"operator_rule"`
	Limits   identity.Limits    `json:"effective_limits"`
	Skill    *string            `json:"skill_md"`
	Online   bool               `json:"online"`
	Pending  int64              `json:"inbox_depth"`
}

type agentPage struct {
	Agents []jsontext.Value `json:"agents"`
	Next   string           `json:"next"`
}

func (a *API) agentBody(ctx context.Context, p hub.Profile) (agentBody, error) {
	details, err := a.hub.Details(ctx, p.ID())
	if err != nil {
		return agentBody{}, err
	}
	_, online := a.hub.Bound(p.ID())
	return agentBody{
		Passport: p.Passport, Resume: details.Resume, Rule: p.Rule, Ceiling: p.Ceiling, Limits: p.Enforced().Limits, Skill: details.Skill,
		Online: online, Pending: a.hub.Pending(p.ID()),
	}, nil
}

func (a *API) encodeAgent(ctx context.Context, p hub.Profile) ([]byte, error) {
	body, err := a.agentBody(ctx, p)
	if err != nil {
		return nil, err
	}
	return identity.Marshal(body)
}

func (a *API) listAgents(c *call) error {
	limit, err := c.limit(a.cfg.Limits)
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
	after, err := c.page(envelope.ValidID)
	if err != nil {
		return err
	}
	all, err := a.hub.Agents(c.Context(), query)
	if err != nil {
		return err
	}
	var page agentPage
	page.Agents, page.Next, err = gather(limit, after, func(n int, after string) ([]hub.Profile, string, error) {
		// Ids grow with age, as the list does.
		from, found := slices.BinarySearchFunc(all, after, func(p hub.Profile, id string) int { return strings.Compare(p.ID(), id) })
		if found {
			from++
		}
		rest := all[from:]
		if len(rest) <= n {
			return rest, "", nil
		}
		return rest[:n], rest[n-1].ID(), nil
	}, counted(c, func(p hub.Profile) ([]byte, error) { return a.encodeAgent(c.Context(), p) }))
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, page)
}

func (a *API) showAgent(c *call) error {
	p, err := a.agent(c.PathValue("id"))
	if err != nil {
		return err
	}
	data, err := a.encodeAgent(c.Context(), p)
	if err != nil {
		return err
	}
	return c.raw(http.StatusOK, data)
}

func (a *API) removeAgent(c *call) error {
	p, err := a.agent(c.PathValue("id"))
	if err != nil {
		return err
	}
	if err := a.as(c).Unregister(c.Context(), p.ID()); err != nil {
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}
