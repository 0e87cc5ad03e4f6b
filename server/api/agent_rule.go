package api

import (
	"net/http"

	"github.com/parley-hub/parley/identity"
)

// setAgentRule sets the operator's rule for an identity, which replaces the
// one before.
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
