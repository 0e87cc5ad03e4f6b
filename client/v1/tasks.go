package v1

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Task is a piece of work that its owner reports on.
type Task struct {
	ID    string `json:"task_id"`
	Owner string `json:"owner_id"`
	Spec  struct {
		Title      string  `json:"title"`
		Capability *string `json:"capability"`
	} `json:"spec"`
	State   string  `json:"state"`
	Channel *string `json:"channel_id"`
	Error   string  `json:"error"`

	Raw json.RawMessage `json:"-"` // the answer as the hub sent it; empty in a list
}

// Tasks lists tasks. The query has the parameters of GET /v1/tasks: owner,
// channel, state, after, limit.
func (c *Client) Tasks(ctx context.Context, query url.Values) (*Page[Task], error) {
	return list[Task](ctx, c, "tasks", "tasks", query)
}

// Task returns one task.
func (c *Client) Task(ctx context.Context, id string) (*Task, error) {
	t, raw, err := get[Task](ctx, c, http.MethodGet, taskPath(id), nil)
	if err != nil {
		return nil, err
	}
	t.Raw = raw
	return t, nil
}

// CancelTask requests the owner of a task to stop, and returns the envelope with the
// request. An empty by means the creator of the task's channel.
func (c *Client) CancelTask(ctx context.Context, id, by, reason string) (Sent, error) {
	var sent Sent
	err := c.Call(ctx, http.MethodPost, taskPath(id)+"/cancel", map[string]string{"by": by, "reason": reason}, &sent)
	return sent, err
}

func taskPath(id string) string { return "/v1/tasks/" + url.PathEscape(id) }
