package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// digestForm is what a capability's digest is computed from: members in this
// order, empty ones left out, escaped as encoding/json does by default, which
// is neither what this module writes elsewhere nor RFC 8785.
type digestForm struct {
	ID                string   `json:"id,omitempty"`
	Summary           string   `json:"summary,omitempty"`
	Outcome           string   `json:"outcome,omitempty"`
	Version           string   `json:"version,omitempty"`
	ContextNeeded     []string `json:"context_needed,omitempty"`
	ArtifactsExpected []string `json:"artifacts_expected,omitempty"`
	ExecutionOutline  []string `json:"execution_outline,omitempty"`
	Constraints       []string `json:"constraints,omitempty"`
	Examples          []string `json:"examples,omitempty"`
	Requirements      []string `json:"requirements,omitempty"`
}

// ComputeDigest is the digest that the document should have.
func (c *CapabilityDoc) ComputeDigest() string { return c.Normalized().Digest }

// DigestBytes is what the digest is the SHA-256 of.
func (c *CapabilityDoc) DigestBytes() []byte {
	n := c.Normalized()
	return n.bytes()
}

// digest is of a document that is normalized already.
func (c *CapabilityDoc) digest() string {
	sum := sha256.Sum256(c.bytes())
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (c *CapabilityDoc) bytes() []byte {
	text, err := json.Marshal(digestForm{
		c.ID, c.Summary, c.Outcome, c.Version, c.ContextNeeded, c.ArtifactsExpected,
		c.ExecutionOutline, c.Constraints, c.Examples, c.Requirements,
	})
	if err != nil {
		return nil // texts and lists of texts always have a JSON form
	}
	return text
}
