package agh

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// catalogKind is the kind of documents with capabilities, which are named by the
// identity's id.
const catalogKind = "agh-capabilities"

// mostBrief bounds the brief catalog in a card, so that a greeting can be sent.
const mostBrief = wire.MaxBytes / 2

// catalog returns the capabilities of a hosted peer. If it does not sign, those that
// need a proof are left out.
func (p *peer) catalog() []wire.CapabilityDoc {
	s := p.room.space.s
	all := s.catalogOf(s.ctx, p.agent)
	if p.signs() {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(d wire.CapabilityDoc) bool { return d.ID == wire.PrivilegedCapability })
}

// catalogOf returns the catalog of an identity; nil: it has none.
func (s *Server) catalogOf(ctx context.Context, agent string) []wire.CapabilityDoc {
	if known, ok := s.catalogs.Load(agent); ok {
		catalog, _ := known.([]wire.CapabilityDoc)
		return catalog
	}
	var catalog []wire.CapabilityDoc
	doc, err := s.hub.Document(ctx, catalogKind, agent)
	if err == nil {
		catalog, err = wire.ParseCatalog(doc.Data)
	}
	if fault.CodeOf(err) == fault.NotFound {
		var details hub.Details
		if details, err = s.hub.Details(ctx, agent); err == nil {
			catalog = catalogOfResume(details.Resume)
		}
	}
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		s.cfg.Log.Warn("a catalog of capabilities cannot be read", "agent", agent, "error", err)
		return nil
	}
	s.catalogs.LoadOrStore(agent, catalog)
	return catalog
}

// catalogOfResume returns the capabilities in an identity's resume, for one without a
// catalog. They are cut to the size of a greeting.
func catalogOfResume(r *identity.Resume) []wire.CapabilityDoc {
	if r == nil {
		return nil
	}
	var catalog []wire.CapabilityDoc
	var examples []string
	outcome := ""
	for _, e := range r.Examples {
		examples = append(examples, e.Title)
		outcome = cmp.Or(outcome, strings.TrimSpace(e.Outcome))
	}
	size := 0
	for _, id := range r.ClaimedCapabilities {
		if id = strings.TrimSpace(id); id == "" || slices.ContainsFunc(catalog, func(d wire.CapabilityDoc) bool { return d.ID == id }) {
			continue
		}
		doc := wire.CapabilityDoc{
			ID: id, Summary: cmp.Or(strings.TrimSpace(r.Summary), id), Outcome: cmp.Or(outcome, id), Examples: examples, Constraints: r.Domains,
		}
		doc.Digest = doc.ComputeDigest()
		if size += len(doc.ID) + len(doc.Summary) + 64; size > mostBrief {
			break
		}
		catalog = append(catalog, doc)
	}
	return catalog
}

// showCatalog returns a catalog as it is shown and sent: normalized, with digests.
func showCatalog(catalog []wire.CapabilityDoc) *catalogDetail {
	d := &catalogDetail{Capabilities: []jsontext.Value{}}
	for _, c := range catalog {
		n := c.Normalized()
		if text, err := n.AppendJSON(nil); err == nil {
			d.Capabilities = append(d.Capabilities, text)
		}
	}
	return d
}

// agent returns the identity of the path, if the caller may see it.
func (c *call) agent() (hub.Profile, error) {
	name := c.PathValue("agent")
	if c.who.Role == Agent && name != c.who.Agent {
		return hub.Profile{}, fault.New(fault.AccessDenied, "this key does not belong to agent %.100q, whose capabilities these are", name)
	}
	id, ok := c.s.hub.FindAgent(name)
	if !ok {
		return hub.Profile{}, fault.New(fault.NotFound, "no agent is called %.100q", name)
	}
	return c.s.hub.AgentByID(id)
}

func (c *call) showCapabilities() error {
	agent, err := c.agent()
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, map[string]any{"capability_catalog": showCatalog(c.s.catalogOf(c.Context(), agent.ID()))})
}

// setCapabilities stores a catalog as its author wrote it. The agent's hosted peers
// greet with it at once.
func (c *call) setCapabilities() error {
	agent, err := c.agent()
	if err != nil {
		return err
	}
	var text jsontext.Value
	if err := c.read(&text); err != nil {
		return err
	}
	catalog, err := wire.ParseCatalog(text)
	if err != nil {
		return err
	}
	var card wire.PeerCard
	if err := card.Offer(catalog); err != nil {
		return fault.Wrap(fault.Invalid, err, "%v", err)
	}
	if len(card.Ext) > mostBrief {
		return fault.New(fault.TooLarge, "ids and summaries have %d bytes; at most %d fit into a greeting", len(card.Ext), mostBrief)
	}
	if err := c.s.storeCatalog(c.Context(), agent.ID(), text); err != nil {
		return err
	}
	return c.answer(http.StatusOK, map[string]any{"capability_catalog": showCatalog(catalog)})
}

func (c *call) removeCapabilities() error {
	agent, err := c.agent()
	if err != nil {
		return err
	}
	if err := c.s.storeCatalog(c.Context(), agent.ID(), nil); err != nil && fault.CodeOf(err) != fault.NotFound {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// storeCatalog makes a catalog durable, or removes it, and greets with it.
func (s *Server) storeCatalog(ctx context.Context, agent string, text []byte) error {
	s.cataloging.Lock()
	defer s.cataloging.Unlock()
	edit := hub.DocumentEdit{Kind: catalogKind, Name: agent, Data: text, Remove: text == nil}
	if _, err := s.hub.EditDocuments(ctx, []hub.DocumentEdit{edit}); err != nil {
		return err
	}
	s.catalogs.Delete(agent)
	if s.cfg.Broker == nil {
		return nil
	}
	for _, p := range s.hostedPeers() {
		if p.agent == agent {
			s.greet(p)
		}
	}
	return nil
}

// otherExt returns a card's extensions without those that are shown elsewhere.
func otherExt(ext []byte) jsontext.Value {
	return withoutMembers(ext, func(name string) bool {
		return name == wire.ExtCapabilitiesBrief || name == wire.ExtCapabilityCatalog
	})
}
