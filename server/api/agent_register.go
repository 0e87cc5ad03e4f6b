package api

import (
	"cmp"
	"net/http"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/server/access"
)

// registrationBody is a request to register an identity. With an agent's key, the
// name may be left out.
type registrationBody struct {
	Name         string   `json:"name"`
	Kind         string   `json:"kind"`
	Summary      string   `json:"summary"`
	Capabilities []string `json:"capabilities"`
}

// registerAgent registers an identity under a name that is not taken. Its scheme
// is api_key, so that only a key made for this name attaches to it later.
func (a *API) registerAgent(c *call) error {
	var body registrationBody
	if err := c.read(&body); err != nil {
		return err
	}
	if c.who.Role == access.Agent {
		body.Name = cmp.Or(body.Name, c.who.Agent)
		if body.Name != c.who.Agent {
			return fault.New(fault.AccessDenied, "your key registers '%s' only; an operator's key registers anyone", c.who.Agent)
		}
	}
	if body.Name == "" {
		return fault.New(fault.Invalid, "name is missing; it is the name to register, for example alice")
	}
	kind := identity.Agent
	if body.Kind != "" {
		var err error
		if kind, err = identity.ParseKind(body.Kind); err != nil {
			return err
		}
	}
	p, err := a.hub.Register(c.Context(), hub.Registration{
		Proved:   true,
		Passport: &identity.Passport{Name: body.Name, Kind: kind, Auth: identity.Auth{Scheme: identity.SchemeAPIKey}},
		Resume:   &identity.Resume{Summary: body.Summary, ClaimedCapabilities: body.Capabilities},
	})
	if err != nil {
		return err
	}
	data, err := a.encodeAgent(c.Context(), p)
	if err != nil {
		return err
	}
	return c.raw(http.StatusCreated, data)
}
