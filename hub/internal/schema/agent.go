package schema

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/identity"
)

// AgentRecord is one record of an identity's log. It replaces the parts that it
// names.
type AgentRecord struct {
	Kind     string            `json:"kind"`
	Passport jsontext.Value    `json:"passport,omitzero"`
	Resume   *identity.Resume  `json:"resume,omitzero"`
	Rule     *identity.Rule    `json:"rule,omitzero"`
	Ceiling  *identity.Ceiling `json:"operator_rule,omitzero"`
	Skill    *string           `json:"skill,omitzero"`
	Samples  map[string][]byte `json:"samples,omitzero"`
	Observed *Observed         `json:"observed,omitzero"`
}

// Observed is the end of a task as it is counted in a resume.
type Observed struct {
	Capability string           `json:"capability"`
	Outcome    identity.Outcome `json:"outcome"`
	LatencyMS  *int64           `json:"latency_ms,omitzero"`
	At         time.Time        `json:"at"`
}

// Kinds of identity records.
const (
	AgentRegistered   = "registered"
	AgentUnregistered = "unregistered"
	AgentResume       = "resume"
	AgentRule         = "rule"
	AgentCeiling      = "operator_rule" // without a rule: it was removed
	AgentSkill        = "skill"
	AgentObservation  = "observation" // counts Observed in the resume
	AgentObserved     = "observed"    // holds the claim of a task that the record before it counted; no longer written
	// AgentWhole repeats resume, skill and samples, so that no earlier record is
	// needed to read them.
	AgentWhole = "whole"
)
