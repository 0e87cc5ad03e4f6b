package v1

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Agent is an identity that is registered with the hub.
type Agent struct {
	Passport struct {
		Name      string    `json:"name"`
		ID        string    `json:"agent_id"`
		Kind      *string   `json:"kind"` // nil means "agent"
		Owner     string    `json:"owner"`
		CreatedAt time.Time `json:"created_at"`
		Auth      struct {
			Scheme string `json:"scheme"`
		} `json:"auth"`
	} `json:"passport"`
	Resume struct {
		Summary      string              `json:"summary"`
		Capabilities []string            `json:"claimed_capabilities"`
		Observed     map[string]Observed `json:"observed"`
	} `json:"resume"`
	OperatorRule *OperatorRule `json:"operator_rule"` // nil: none

	Online bool  `json:"online"`
	Depth  int64 `json:"inbox_depth"` // how much it has not answered

	LastSeenAt   *time.Time `json:"last_seen_at"` // nil: not since the hub was started
	OpenChannels int        `json:"open_channels"`
	TurnsWaiting int        `json:"turns_waiting"`
	OldestTurnAt *time.Time `json:"oldest_turn_at"`

	Raw json.RawMessage `json:"-"` // the answer as the hub sent it; empty in a list
}

// Observed counts how the tasks of one capability ended.
type Observed struct {
	N, Completed, Failed, Expired int64
}

// OperatorRule is what an identity's own rule cannot exceed. A list that is
// nil and a number that is zero set no ceiling; an empty list allows nobody.
type OperatorRule struct {
	Access struct {
		InboundFrom  []string `json:"inbound_from,omitzero"`
		OutboundTo   []string `json:"outbound_to,omitzero"`
		ChannelTypes struct {
			Initiate []string `json:"initiate,omitzero"`
			Accept   []string `json:"accept,omitzero"`
		} `json:"channel_types,omitzero"`
	} `json:"access,omitzero"`
	Limits struct {
		MaxConcurrentChannels int64 `json:"max_concurrent_channels,omitzero"`
		MaxConcurrentTasks    int64 `json:"max_concurrent_tasks,omitzero"`
		Rate                  struct {
			PerMinute int64 `json:"per_minute,omitzero"`
			Burst     int64 `json:"burst,omitzero"`
		} `json:"rate,omitzero"`
		DelegationDepth int64 `json:"delegation_depth,omitzero"`
		Inbox           struct {
			MaxPending int64 `json:"max_pending,omitzero"`
		} `json:"inbox,omitzero"`
	} `json:"limits,omitzero"`
}

// Agents lists identities. The query has the parameters of GET /v1/agents:
// capability, query, kind, after, limit.
func (c *Client) Agents(ctx context.Context, query url.Values) (*Page[Agent], error) {
	return list[Agent](ctx, c, "agents", "agents", query)
}

// Agent returns an identity by name or id.
func (c *Client) Agent(ctx context.Context, name string) (*Agent, error) {
	a, raw, err := get[Agent](ctx, c, http.MethodGet, agentPath(name), nil)
	if err != nil {
		return nil, err
	}
	a.Raw = raw
	return a, nil
}

// Registration is what AddAgent asks for.
type Registration struct {
	Name         string   `json:"name"`
	Kind         string   `json:"kind,omitempty"` // agent, human or remote_agent; empty means agent
	Summary      string   `json:"summary,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`
}

// AddAgent registers an identity: an operator's key anyone, an agent's key its
// own name. A name that is taken is refused with fault.NameTaken.
func (c *Client) AddAgent(ctx context.Context, r Registration) (*Agent, error) {
	a, raw, err := get[Agent](ctx, c, http.MethodPost, "/v1/agents", r)
	if err != nil {
		return nil, err
	}
	a.Raw = raw
	return a, nil
}

// RemoveAgent unregisters an identity. Its channels and tasks stay.
func (c *Client) RemoveAgent(ctx context.Context, name string) error {
	return c.Call(ctx, http.MethodDelete, agentPath(name), nil, nil)
}

// SetAgentRule replaces the operator's rule for an identity; nil removes it.
// The identity's own rule stays as it is, and is clipped by it.
func (c *Client) SetAgentRule(ctx context.Context, name string, rule *OperatorRule) (*Agent, error) {
	method, body := http.MethodPut, any(rule)
	if rule == nil {
		method, body = http.MethodDelete, nil
	}
	a, raw, err := get[Agent](ctx, c, method, agentPath(name)+"/rule", body)
	if err != nil {
		return nil, err
	}
	a.Raw = raw
	return a, nil
}

func agentPath(name string) string { return "/v1/agents/" + url.PathEscape(name) }
