package wire

import (
	"slices"
	"strings"

	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// CapabilityBody transfers one capability.
type CapabilityBody struct{ Capability CapabilityDoc }

// CapabilityDoc describes one thing that a peer can do.
type CapabilityDoc struct {
	ID, Summary, Outcome, Version, Digest string

	ContextNeeded     []string
	ArtifactsExpected []string
	ExecutionOutline  []string
	Constraints       []string
	Examples          []string
	Requirements      []string
}

func readCapability(raw []byte) (*CapabilityBody, *Rejection) {
	document := jsonscan.Member(raw, "capability")
	if document == nil || document[0] != '{' {
		return nil, malformed("body.capability", "is missing or not an object")
	}
	doc, fault := readCapabilityDoc(document, "body.capability.")
	if fault != nil {
		return nil, fault
	}
	if blank(doc.Digest) {
		return nil, malformed("body.capability.digest", "is missing or blank")
	}
	if doc.Digest != doc.ComputeDigest() {
		return nil, &Rejection{
			Reason: VerificationFailed, Member: "body.capability.digest",
			Detail: "`body.capability.digest` is not the digest of the capability",
		}
	}
	return &CapabilityBody{*doc}, nil
}

// ReadCapability reads a capability document, whatever its digest says. The
// error is a *Rejection.
func ReadCapability(document []byte) (*CapabilityDoc, error) {
	if err := jsonscan.Check(document, MaxDepth); err != nil {
		return nil, &Rejection{Reason: Malformed, Detail: "the capability is not valid JSON: " + err.Error()}
	}
	document = jsonscan.Trim(document)
	if document[0] != '{' {
		return nil, &Rejection{Reason: Malformed, Detail: "the capability is not a JSON object"}
	}
	doc, fault := readCapabilityDoc(document, "")
	if fault != nil {
		return nil, fault
	}
	return doc, nil
}

func readCapabilityDoc(raw []byte, path string) (*CapabilityDoc, *Rejection) {
	b, doc := body{path: path}, &CapabilityDoc{}
	for name, value := range jsonscan.Members(raw) {
		switch string(name) {
		case "id":
			b.text("id", value, &doc.ID)
		case "summary":
			b.text("summary", value, &doc.Summary)
		case "outcome":
			b.text("outcome", value, &doc.Outcome)
		case "version":
			b.text("version", value, &doc.Version)
		case "digest":
			b.text("digest", value, &doc.Digest)
		case "context_needed":
			b.texts("context_needed", value, &doc.ContextNeeded)
		case "artifacts_expected":
			b.texts("artifacts_expected", value, &doc.ArtifactsExpected)
		case "execution_outline":
			b.texts("execution_outline", value, &doc.ExecutionOutline)
		case "constraints":
			b.texts("constraints", value, &doc.Constraints)
		case "examples":
			b.texts("examples", value, &doc.Examples)
		case "requirements":
			b.texts("requirements", value, &doc.Requirements)
		}
	}
	switch {
	case b.fault != nil:
	case blank(doc.ID):
		b.wrong("id", "is missing or blank")
	case blank(doc.Summary):
		b.wrong("summary", "is missing or blank")
	case blank(doc.Outcome):
		b.wrong("outcome", "is missing or blank")
	default:
		b.requirements(doc.Requirements)
	}
	return doc, b.fault
}

func (b *body) requirements(list []string) {
	seen := make(map[string]bool, len(list))
	for _, requirement := range list {
		requirement = strings.TrimSpace(requirement)
		if requirement == "" || seen[requirement] {
			b.wrong("requirements", "has a blank or doubled entry")
			return
		}
		seen[requirement] = true
	}
}

// Normalized is the document as it is digested and shown: trimmed, without
// blank entries, its requirements sorted, its digest computed.
func (c *CapabilityDoc) Normalized() CapabilityDoc {
	n := CapabilityDoc{
		ID: strings.TrimSpace(c.ID), Summary: strings.TrimSpace(c.Summary),
		Outcome: strings.TrimSpace(c.Outcome), Version: strings.TrimSpace(c.Version),
		ContextNeeded: tidy(c.ContextNeeded), ArtifactsExpected: tidy(c.ArtifactsExpected),
		ExecutionOutline: tidy(c.ExecutionOutline), Constraints: tidy(c.Constraints), Examples: tidy(c.Examples),
		Requirements: tidy(c.Requirements),
	}
	slices.Sort(n.Requirements)
	n.Digest = n.digest()
	return n
}

// tidy trims a list's entries and drops blank ones.
func tidy(list []string) []string {
	var kept []string
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

// AppendJSON writes the document; empty members are left out.
func (c *CapabilityDoc) AppendJSON(buf []byte) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: buf}
	c.write(b)
	return b.Result()
}

func (c *CapabilityDoc) write(b *jsonbuf.Buffer) {
	b.Open('{')
	b.Key("id").String(c.ID)
	b.Key("summary").String(c.Summary)
	b.Key("outcome").String(c.Outcome)
	for _, member := range [...]struct{ name, text string }{{"version", c.Version}, {"digest", c.Digest}} {
		if member.text != "" {
			b.Key(member.name).String(member.text)
		}
	}
	for _, member := range [...]struct {
		name string
		list []string
	}{
		{"context_needed", c.ContextNeeded},
		{"artifacts_expected", c.ArtifactsExpected},
		{"execution_outline", c.ExecutionOutline},
		{"constraints", c.Constraints},
		{"examples", c.Examples},
		{"requirements", c.Requirements},
	} {
		if len(member.list) > 0 {
			b.Key(member.name).Strings(member.list)
		}
	}
	b.Close('}')
}

// AppendJSON writes the body.
func (c *CapabilityBody) AppendJSON(buf []byte) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: buf}
	b.Open('{')
	c.Capability.write(b.Key("capability"))
	b.Close('}')
	return b.Result()
}
