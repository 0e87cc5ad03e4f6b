package wire

import (
	"cmp"
	"slices"
	"strings"

	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// Extension keys of AGH.
const (
	ExtInclude           = "agh.include"
	ExtCapabilityIDs     = "agh.capability_ids"
	ExtCapabilityCatalog = "agh.capability_catalog"
	ExtCapabilitiesBrief = "agh.capabilities_brief"
	ExtWorkflowID        = "agh.workflow_id"
	ExtHandoffVersion    = "agh.handoff_version"
	ExtHandoffDigest     = "agh.handoff_digest"
	ExtHandoffSource     = "agh.handoff_source"
)

// includeCatalog is the value of agh.include that asks for the catalog.
const includeCatalog = "capability_catalog"

// Brief is a capability's entry in a card.
type Brief struct{ ID, Summary string }

// Brief reads the card's agh.capabilities_brief: one entry for each of the
// card's capabilities, in their order, with an empty summary where the card
// says none.
func (c *PeerCard) Brief() []Brief {
	summaries := map[string]string{}
	for entry := range jsonscan.Elements(jsonscan.Member(c.Ext, ExtCapabilitiesBrief)) {
		id, _ := jsonscan.Text(jsonscan.Member(entry, "id"))
		summary, _ := jsonscan.Text(jsonscan.Member(entry, "summary"))
		summaries[strings.TrimSpace(id)] = strings.TrimSpace(summary)
	}
	list := make([]Brief, len(c.Capabilities))
	for i, id := range c.Capabilities {
		list[i] = Brief{id, summaries[id]}
	}
	return list
}

// labels are the card's capabilities by summary, or by id.
func (c *PeerCard) labels() []string {
	var list []string
	for _, brief := range c.Brief() {
		label := brief.Summary
		label = cmp.Or(label, brief.ID)
		list = append(list, label)
	}
	return list
}

// Offer puts a catalog into the card: its capabilities, and their brief form
// into ext. Without a catalog the list is empty and the key is left out.
func (c *PeerCard) Offer(catalog []CapabilityDoc) error {
	c.Capabilities, c.Ext = []string{}, nil
	if len(catalog) == 0 {
		return nil
	}
	b := &jsonbuf.Buffer{}
	b.Open('{').Key(ExtCapabilitiesBrief).Open('[')
	for i := range catalog {
		c.Capabilities = append(c.Capabilities, catalog[i].ID)
		b.Open('{').Key("id").String(catalog[i].ID)
		b.Key("summary").String(catalog[i].Summary).Close('}')
	}
	b.Close(']').Close('}')
	text, err := b.Result()
	c.Ext = text
	return err
}

// CatalogRequest is what a whois request asks of a catalog.
type CatalogRequest struct {
	Wanted bool
	All    bool
	IDs    []string // if not All: only these; none may be left
}

// CatalogRequest reads the request's ext. A filter of the wrong type selects
// nothing.
func (e *Envelope) CatalogRequest() CatalogRequest {
	var r CatalogRequest
	for value := range jsonscan.Elements(jsonscan.Member(e.Ext, ExtInclude)) {
		if s, ok := jsonscan.Text(value); ok && s == includeCatalog {
			r.Wanted = true
		}
	}
	filter := jsonscan.Member(e.Ext, ExtCapabilityIDs)
	if r.All = filter == nil; r.All {
		return r
	}
	for value := range jsonscan.Elements(filter) {
		s, ok := jsonscan.Text(value)
		if !ok {
			r.IDs = nil
			return r
		}
		if s = strings.TrimSpace(s); s != "" {
			r.IDs = append(r.IDs, s)
		}
	}
	return r
}

// Select keeps what the request asks for, in the catalog's order, normalized.
func (r CatalogRequest) Select(catalog []CapabilityDoc) []CapabilityDoc {
	list := []CapabilityDoc{}
	for i := range catalog {
		if doc := catalog[i].Normalized(); r.All || slices.Contains(r.IDs, doc.ID) {
			list = append(list, doc)
		}
	}
	return list
}

// AppendCatalogExt writes the ext of a whois response that carries a catalog.
func AppendCatalogExt(buf []byte, catalog []CapabilityDoc) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: buf}
	b.Open('{').Key(ExtCapabilityCatalog).Open('{').Key("capabilities").Open('[')
	for i := range catalog {
		catalog[i].write(b)
	}
	b.Close(']').Close('}').Close('}')
	return b.Result()
}

// Catalog reads the catalog that a whois response carries; false: it carries
// none that can be read. The documents' digests are not compared.
func (e *Envelope) Catalog() ([]CapabilityDoc, bool) {
	raw := jsonscan.Member(jsonscan.Member(e.Ext, ExtCapabilityCatalog), "capabilities")
	if raw == nil || raw[0] != '[' {
		return nil, false
	}
	catalog := []CapabilityDoc{}
	for entry := range jsonscan.Elements(raw) {
		if entry[0] != '{' {
			return nil, false
		}
		doc, fault := readCapabilityDoc(entry, "ext.")
		if fault != nil {
			return nil, false
		}
		catalog = append(catalog, *doc)
	}
	return catalog, true
}

// Aligned reports whether a catalog has exactly the card's capabilities, in
// whatever order; only then may a receiver keep it.
func (c *PeerCard) Aligned(catalog []CapabilityDoc) bool {
	ids := make([]string, len(catalog))
	for i := range catalog {
		ids[i] = strings.TrimSpace(catalog[i].ID)
	}
	slices.Sort(ids)
	return slices.Equal(ids, slices.Sorted(slices.Values(c.Capabilities)))
}
