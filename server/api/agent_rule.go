package api

import (
	"net/http"

	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/budget"
)

// setAgentRule sets the operator's rule for an identity. It replaces an earlier
// one.
func (a *API) setAgentRule(c *call) error {
	var ceiling identity.Ceiling
	if err := c.read(&ceiling); err != nil {
		return err
	}
	return a.changeAgentRule(c, &ceiling)
}

func (a *API) removeAgentRule(c *call) error { return a.changeAgentRule(c, nil) }

func (a *API) changeAgentRule(c *call, ceiling *identity.Ceiling) error {
	p, err := a.agent(c.PathValue("id"))
	if err != nil {
		return err
	}
	if p, err = a.hub.SetCeiling(c.Context(), p.ID(), ceiling); err != nil {
		return err
	}
	data, err := a.encodeAgent(c.Context(), p)
	if err != nil {
		return err
	}
	return c.raw(http.StatusOK, data)
}

func (a *API) budgets() *budget.Store { return &budget.Store{Hub: a.hub} }

// showBudget shows an agent's budget to the agent and to callers who see everything.
func (a *API) showBudget(c *call) error {
	p, err := a.agent(c.PathValue("id"))
	if err == nil && !c.who.seesAll() {
		_, err = c.who.itself(p.ID())
	}
	if err != nil {
		return err
	}
	b, err := a.budgets().Read(c.Context(), p.ID())
	if err == nil && b == nil {
		err = fault.New(fault.NotFound, "'%s' has no budget", c.PathValue("id"))
	}
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, b)
}

type budgetBody struct {
	Limits budget.Limits `json:"limits"`
	Prices runner.Prices `json:"prices"`
}

// setBudget sets a budget. With an agent's key, it lowers that agent's budget only.
func (a *API) setBudget(c *call) error {
	var body budgetBody
	if err := c.read(&body); err != nil {
		return err
	}
	id, err := a.actor(c, "id", c.PathValue("id"))
	if err != nil {
		return err
	}
	b, err := a.budgets().Set(c.Context(), id, body.Limits, body.Prices, c.who.Role >= access.Operator)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, b)
}

func (a *API) removeBudget(c *call) error {
	p, err := a.agent(c.PathValue("id"))
	if err == nil {
		err = a.budgets().Remove(c.Context(), p.ID())
	}
	if err != nil {
		return err
	}
	return c.write(http.StatusNoContent, nil)
}

type grantBody struct {
	Task   string        `json:"task"`
	Turn   bool          `json:"turn"`
	Input  int64         `json:"input"`
	Output int64         `json:"output"`
	Prices runner.Prices `json:"prices"`
}

func (a *API) grant(c *call) error {
	var body grantBody
	if err := c.read(&body); err != nil {
		return err
	}
	id, err := a.actor(c, "id", c.PathValue("id"))
	if err != nil {
		return err
	}
	g, err := a.budgets().Grant(c.Context(), budget.Ask{
		Agent: id, Task: body.Task, Prices: body.Prices,
		Charge: runner.Charge{Turn: body.Turn, Input: body.Input, Output: body.Output},
	})
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, g)
}

type settleBody struct {
	Task   string `json:"task"`
	Input  int64  `json:"input"`
	Output int64  `json:"output"`
}

func (a *API) settleGrant(c *call) error {
	var body settleBody
	if err := c.read(&body); err != nil {
		return err
	}
	id, err := a.actor(c, "id", c.PathValue("id"))
	if err == nil {
		err = a.budgets().Settle(c.Context(), id, body.Task, c.PathValue("grant"), body.Input, body.Output)
	}
	if err != nil {
		return err
	}
	return c.write(http.StatusNoContent, nil)
}
