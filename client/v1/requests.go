package v1

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/request"
)

// Request is something that waits for somebody.
type Request = request.Request

// Asking is what Ask asks. Names may be given instead of ids.
type Asking = request.Asking

// Ask makes a request in a channel, and returns it once it is durable. If it was made
// before with the same key, that one is returned as it is now.
func (c *Client) Ask(ctx context.Context, q Asking) (*Request, error) {
	body := map[string]any{
		"kind": q.Kind, "asked_by": q.AskedBy, "for": q.For, "if_nobody_answers": q.IfNobodyAnswers, "agents_may_answer": q.AgentsMayAnswer,
		"title": q.Title, "body": q.Body, "choices": q.Choices, "run_id": q.Run, "idempotency_key": q.Key,
	}
	if !q.DueAt.IsZero() {
		body["due_at"] = q.DueAt
	}
	if q.Action != nil {
		action := map[string]any{"name": q.Action.Name}
		if len(q.Action.Arguments) > 0 {
			action["arguments"] = q.Action.Arguments
		}
		body["action"] = action
	}
	if q.Trigger != nil {
		body["trigger"] = q.Trigger
	}
	asked, _, err := get[Request](ctx, c, http.MethodPost, channelPath(q.Channel)+"/requests", body)
	return asked, err
}

// Requests lists requests. The query has the parameters of GET /v1/requests:
// state, kind, channel, for, asked_by, sort, after, before, limit, as.
func (c *Client) Requests(ctx context.Context, query url.Values) (*Page[Request], error) {
	return list[Request](ctx, c, "requests", "requests", query)
}

// Request returns one request, and the hub's answer unchanged.
func (c *Client) Request(ctx context.Context, id string) (*Request, json.RawMessage, error) {
	return get[Request](ctx, c, http.MethodGet, requestPath(id), nil)
}

// Reply is the answer to a request.
type Reply struct {
	Choice string `json:"choice,omitempty"`
	Text   string `json:"text,omitempty"`
	As     string `json:"as,omitempty"` // name or id; empty: the key's own, or an operator
	Note   string `json:"note,omitempty"`
	Digest string `json:"digest,omitempty"` // of the action that was shown
}

// AnswerRequest answers a request, and returns it.
func (c *Client) AnswerRequest(ctx context.Context, id string, reply Reply) (*Request, error) {
	r, _, err := get[Request](ctx, c, http.MethodPost, requestPath(id)+"/answer", reply)
	return r, err
}

// FollowRequests streams requests as Follow does: each when it is made and when it
// ends. The query has the parameters of Requests.
func (c *Client) FollowRequests(ctx context.Context, query url.Values, after string, visit func(*Request) error) error {
	return c.Follow(ctx, "/v1/requests?"+query.Encode(), after, func(f Frame) error {
		if f.Name != "request" {
			return nil
		}
		r := &Request{}
		if err := json.Unmarshal(f.Data, r); err != nil {
			return err
		}
		return visit(r)
	})
}

// AwaitRequest returns a request once it is no longer open. It waits across
// restarts of the hub.
func (c *Client) AwaitRequest(ctx context.Context, id string) (*Request, error) {
	r, _, err := c.Request(ctx, id)
	if err != nil || r.State != request.Open {
		return r, err
	}
	// The list has the position to follow from; what ended before is listed again.
	page, err := c.Requests(ctx, url.Values{"channel": {r.Channel}, "limit": {"1"}})
	if err != nil {
		return nil, err
	}
	var at struct {
		Position string `json:"position"`
	}
	if err := json.Unmarshal(page.Raw, &at); err != nil {
		return nil, err
	}
	if r, _, err = c.Request(ctx, id); err != nil || r.State != request.Open {
		return r, err
	}
	err = c.FollowRequests(ctx, url.Values{"channel": {r.Channel}, "asked_by": {r.AskedBy}}, at.Position, func(changed *Request) error {
		if changed.ID != id || changed.State == request.Open {
			return nil
		}
		r = changed
		return ErrStop
	})
	if err == nil && ctx.Err() != nil && r.State == request.Open {
		err = fault.Wrap(fault.Unavailable, ctx.Err(), "gave up waiting for request '%s': %v", id, ctx.Err())
	}
	return r, err
}

func requestPath(id string) string { return "/v1/requests/" + url.PathEscape(id) }
