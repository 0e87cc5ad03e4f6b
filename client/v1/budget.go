package v1

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Budget is what an agent's models may spend, and have spent.
type Budget struct {
	Limits BudgetLimits `json:"limits"`
	Prices Prices       `json:"prices"`
	Spent  struct {
		Tokens      int64      `json:"tokens"`
		NanoDollars int64      `json:"nano_dollars"`
		Turns       int64      `json:"turns"`
		Since       *time.Time `json:"since"`
	} `json:"spent"`

	Raw json.RawMessage `json:"-"` // the answer as the hub sent it
}

// BudgetLimits are what may be spent; 0 is without limit.
type BudgetLimits struct {
	Tokens      int64         `json:"tokens,omitzero"`
	NanoDollars int64         `json:"nano_dollars,omitzero"`
	Turns       int64         `json:"turns,omitzero"`
	WallTime    time.Duration `json:"nanoseconds,omitzero"` // from the first turn on
}

// Prices are what a million tokens cost.
type Prices struct {
	Input  int64 `json:"input_nano_dollars,omitzero"`
	Output int64 `json:"output_nano_dollars,omitzero"`
}

// GrantAsk is a request to a model that will be made.
type GrantAsk struct {
	Task   string `json:"task,omitzero"` // the delegation that it is made for
	Turn   bool   `json:"turn,omitzero"` // it begins a turn
	Input  int64  `json:"input,omitzero"`
	Output int64  `json:"output,omitzero"` // 0: without limit
	Prices Prices `json:"prices,omitzero"`
}

// Grant is the result of GrantAsk. Without an id the agent has no budget.
type Grant struct {
	ID     string    `json:"grant_id"`
	Output int64     `json:"output"`
	Until  time.Time `json:"until"`
}

func budgetPath(agent string) string { return "/v1/agents/" + url.PathEscape(agent) + "/budget" }

// Budget returns an agent's budget, by name or id.
func (c *Client) Budget(ctx context.Context, agent string) (*Budget, error) {
	b, raw, err := get[Budget](ctx, c, http.MethodGet, budgetPath(agent), nil)
	if err == nil {
		b.Raw = raw
	}
	return b, err
}

// SetBudget sets what an agent's models may spend; what they have spent stays.
func (c *Client) SetBudget(ctx context.Context, agent string, limits BudgetLimits, prices Prices) (*Budget, error) {
	b, raw, err := get[Budget](ctx, c, http.MethodPut, budgetPath(agent), map[string]any{"limits": limits, "prices": prices})
	if err == nil {
		b.Raw = raw
	}
	return b, err
}

// RemoveBudget removes an agent's budget, and the record of what was spent.
func (c *Client) RemoveBudget(ctx context.Context, agent string) error {
	return c.Call(ctx, http.MethodDelete, budgetPath(agent), nil, nil)
}

// Grant counts a request to a model before it is made.
func (c *Client) Grant(ctx context.Context, agent string, ask GrantAsk) (*Grant, error) {
	g, _, err := get[Grant](ctx, c, http.MethodPost, "/v1/agents/"+url.PathEscape(agent)+"/grants", ask)
	return g, err
}

// SettleGrant replaces what was granted by what was used.
func (c *Client) SettleGrant(ctx context.Context, agent, grant, task string, input, output int64) error {
	path := "/v1/agents/" + url.PathEscape(agent) + "/grants/" + url.PathEscape(grant) + "/settle"
	return c.Call(ctx, http.MethodPost, path, map[string]any{"task": task, "input": input, "output": output}, nil)
}
