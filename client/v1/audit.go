package v1

import (
	"context"
	"encoding/json"
	"net/url"
)

// Audit reads a page of the audit. The query has the parameters of GET
// /v1/audit: kind, channel, agent, since, until, after, limit.
func (c *Client) Audit(ctx context.Context, query url.Values) (*Page[json.RawMessage], error) {
	return list[json.RawMessage](ctx, c, "audit", "records", query)
}

// FollowAudit streams the audit as Follow does.
func (c *Client) FollowAudit(ctx context.Context, query url.Values, after string, visit func(Frame) error) error {
	return c.Follow(ctx, "/v1/audit?"+query.Encode(), after, visit)
}
