package hpd

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// agentKind is the kind of the documents that are agent definitions.
const agentKind = "hpd-agent"

// definition reads an agent's definition.
func (s *Server) definition(ctx context.Context, id string) (wire.StoredAgent, uint64, error) {
	var a wire.StoredAgent
	d, err := s.hub.Document(ctx, agentKind, id)
	if code := fault.CodeOf(err); code == fault.NotFound || code == fault.Invalid || code == fault.TooLarge {
		return a, 0, fault.New(fault.NotFound, "Agent '%.200s' was not found.", id)
	}
	if err != nil {
		return a, 0, err
	}
	if err := json.Unmarshal(d.Data, &a); err != nil {
		return a, 0, fault.Wrap(fault.Internal, err, "agent definition %q cannot be read: %v", id, err)
	}
	return a, d.Version, nil
}

// Definition reads an agent's definition by its id.
func (s *Server) Definition(ctx context.Context, id string) (wire.StoredAgent, error) {
	a, _, err := s.definition(ctx, id)
	return a, err
}

func (c *call) checkConfig(config wire.Raw) error {
	if config.Kind() != '{' {
		return c.refuse(http.StatusBadRequest, wire.AgentConfig, "`config` is an object.")
	}
	return nil
}

func (s *Server) createAgent(c *call) error {
	var in wire.CreateAgent
	if err := c.read(&in); err != nil {
		return err
	}
	if err := c.checkConfig(in.Config); err != nil {
		return err
	}
	if strings.TrimSpace(in.Name) == "" {
		return fault.New(fault.Invalid, "`name` is empty; say what the agent is called")
	}
	now := s.now()
	a := wire.StoredAgent{AgentSummary: wire.AgentSummary{ID: newID(), Name: in.Name, CreatedAt: now, UpdatedAt: now, Metadata: in.Metadata}, Config: in.Config}
	if err := s.putAgent(c, &a, 0); err != nil {
		return err
	}
	s.location(c, "agents", a.ID)
	return c.write(http.StatusCreated, a)
}

func (s *Server) putAgent(c *call, a *wire.StoredAgent, version uint64) error {
	data, err := marshal(a)
	if err != nil {
		return err
	}
	_, err = s.hub.PutDocument(c.Context(), agentKind, a.ID, data, &version)
	return err
}

func (s *Server) getAgent(c *call) error {
	a, _, err := s.definition(c.Context(), c.agent)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, a)
}

func (s *Server) updateAgent(c *call) error {
	var in wire.UpdateAgent
	if err := c.read(&in); err != nil {
		return err
	}
	a, version, err := s.definition(c.Context(), c.agent)
	if err != nil {
		return err
	}
	if err := c.checkConfig(in.Config); err != nil {
		return err
	}
	a.Config, a.UpdatedAt = in.Config, s.now()
	if err := s.putAgent(c, &a, version); err != nil {
		return err
	}
	return c.write(http.StatusOK, a)
}

func (s *Server) deleteAgent(c *call) error {
	_, version, err := s.definition(c.Context(), c.agent)
	if err != nil {
		return err
	}
	if err := s.hub.RemoveDocument(c.Context(), agentKind, c.agent, &version); err != nil {
		return err
	}
	return c.empty(http.StatusNoContent)
}

func (s *Server) listAgents(c *call) error {
	list := []wire.AgentSummary{}
	page := hub.DocumentPage{Limit: 1000}
	for {
		found, next, err := s.hub.Documents(c.Context(), agentKind, page)
		if err != nil {
			return err
		}
		for _, d := range found {
			var a wire.StoredAgent
			if err := json.Unmarshal(d.Data, &a); err != nil {
				return fault.Wrap(fault.Internal, err, "agent definition %q cannot be read: %v", d.Name, err)
			}
			list = append(list, a.AgentSummary)
		}
		if next == "" {
			return c.write(http.StatusOK, list)
		}
		page.After = next
	}
}
