package hosted

import (
	"context"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/server/budget"
)

// maxLimited is how many definitions are remembered to have their budget; one
// that was forgotten is checked again.
const maxLimited = 4096

// purse pays for a definition's requests from the budget that the hub stores
// for it; nil: there is no limit. The limits are those of the current
// settings; what was spent stays.
func (h *Host) purse(ctx context.Context, id string) (runner.Purse, error) {
	if h.cfg.Budgets == nil || h.cfg.Limits == (budget.Limits{}) {
		return nil, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.limited[id] {
		if _, err := h.cfg.Budgets.Set(ctx, id, h.cfg.Limits, h.cfg.Prices, true); err != nil {
			return nil, err
		}
		if len(h.limited) >= maxLimited {
			clear(h.limited)
		}
		h.limited[id] = true
	}
	return &purse{h.cfg.Budgets, id}, nil
}

// purse is a definition's budget, as a runner uses it.
type purse struct {
	budgets    *budget.Store
	definition string
}

// Begin counts a request before it is made.
func (p *purse) Begin(ctx context.Context, t *agent.Turn, c runner.Charge) (*runner.Grant, error) {
	task := t.Delegation()
	granted, err := p.budgets.Grant(ctx, budget.Ask{Agent: p.definition, Task: task, Charge: c})
	if err != nil {
		return nil, err
	}
	c.Output = granted.Output
	return &runner.Grant{
		Charge: c, ID: granted.ID, Task: task, Until: granted.Until,
		Late: fault.New(fault.RateLimited, "the definition's time is over (agents.time); raise it to go on"),
	}, nil
}

// Settle replaces what was counted by what was used.
func (p *purse) Settle(ctx context.Context, g *runner.Grant, used provider.Usage) error {
	return p.budgets.Settle(ctx, p.definition, g.Task, g.ID, used.Prompt, used.Completion)
}
