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
	Online bool  `json:"online"`
	Depth  int64 `json:"inbox_depth"` // how much it has not answered

	Raw json.RawMessage `json:"-"` // the answer as the hub sent it; empty in a list
}

// Observed counts how the tasks of one capability ended.
type Observed struct {
	N, Completed, Failed, Expired int64
}

// Agents lists identities. The query has the parameters of GET /v1/agents:
// capability, query, kind, after, limit.
func (c *Client) Agents(ctx context.Context, query url.Values) (*Page[Agent], error) {
	return list[Agent](ctx, c, "agents", "agents", query)
}

// Agent asks for an identity by name or id.
func (c *Client) Agent(ctx context.Context, name string) (*Agent, error) {
	a, raw, err := get[Agent](ctx, c, http.MethodGet, agentPath(name), nil)
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

func agentPath(name string) string { return "/v1/agents/" + url.PathEscape(name) }
