package hub

import (
	"context"
	"time"

	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/identity"
)

// SetCeiling sets the operator's rule for an identity, which its own rule
// cannot exceed and SetRule does not change. It holds from the next check on;
// nil removes it.
func (h *Hub) SetCeiling(ctx context.Context, id string, ceiling *identity.Ceiling) (Profile, error) {
	if ceiling != nil {
		if err := ceiling.Check(); err != nil {
			return Profile{}, err
		}
		ceiling = ceiling.Clone()
	}
	p, _, err := h.change(ctx, id, func(r *record, _ *details, _ time.Time) (schema.AgentRecord, fields, error) {
		r.Ceiling = ceiling
		return schema.AgentRecord{Kind: schema.AgentCeiling, Ceiling: ceiling}, fields{"agent_id": id, "removed": ceiling == nil}, nil
	}, "operator_rule_set")
	if err != nil {
		return Profile{}, err
	}
	h.tellAgent(AgentEvent{Agent: id, Kind: "operator_rule_set", Removed: ceiling == nil})
	return p, nil
}

// enforce computes the rule that holds from what is stored and the hub's
// limits.
func (h *Hub) enforce(r *record) {
	if r.Rule != nil {
		r.enforced = identity.Enforce(r.Rule, r.Ceiling, int64(h.opts.Limits.Inbox))
	}
}
