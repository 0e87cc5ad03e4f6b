package schema

import (
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
}

// Kinds of identity records.
const (
	AgentRegistered   = "registered"
	AgentUnregistered = "unregistered"
	AgentResume       = "resume"
	AgentRule         = "rule"
	AgentCeiling      = "operator_rule" // without one, it was removed
	AgentSkill        = "skill"
	AgentObserved     = "observed" // a task was counted
)
