// Package hpd is the Go client of a hub's HPD routes: sessions, branches, their
// events as history and as a stream, and the side of a remote producer. The
// commands of parley use it. Interfaces for people use the TypeScript client.
//
// A refusal is a *fault.Error. The package stores nothing.
package hpd

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/dialect/hpd/wire"
)

// prefix is where a hub serves the dialect.
const prefix = "/hpd"

// Client speaks with one hub. It is safe for concurrent use.
type Client struct{ hub *v1.Client }

// New returns a client that reaches the hub through hub.
func New(hub *v1.Client) *Client { return &Client{hub} }

// Reach returns an error if the hub cannot be reached or refuses the caller.
func (c *Client) Reach(ctx context.Context) error {
	return c.hub.Call(ctx, http.MethodGet, path("openapi.json"), nil, nil)
}

// path joins ids, which may contain slashes, and fixed parts to a path.
func path(parts ...string) string {
	out := prefix
	for _, p := range parts {
		out += "/" + url.PathEscape(p)
	}
	return out
}

func branchPath(at wire.Scope) string {
	return path("sessions", at.Session, "branches", at.Branch)
}

// agentPath returns the path of an agent on a branch.
func agentPath(agent string, at wire.Scope) string {
	return path("agents", agent, "sessions", at.Session, "branches", at.Branch)
}

// ask calls a route, and also returns the answer as the hub sent it.
func ask[T any](ctx context.Context, c *Client, method, path string, body any) (into T, raw jsontext.Value, err error) {
	if err = c.hub.Call(ctx, method, path, body, &raw); err != nil {
		return into, nil, err
	}
	return into, raw, json.Unmarshal(raw, &into)
}

// Sessions lists sessions. The query has the parameters of GET /sessions:
// limit, offset, sortBy, sortDirection.
func (c *Client) Sessions(ctx context.Context, query url.Values) ([]wire.Session, jsontext.Value, error) {
	return ask[[]wire.Session](ctx, c, http.MethodGet, path("sessions")+"?"+query.Encode(), nil)
}

// CreateSession makes a session with its branch main.
func (c *Client) CreateSession(ctx context.Context, in wire.CreateSession) (*wire.Session, error) {
	s, _, err := ask[*wire.Session](ctx, c, http.MethodPost, path("sessions"), body(in))
	return s, err
}

// Session returns one session.
func (c *Client) Session(ctx context.Context, id string) (*wire.Session, jsontext.Value, error) {
	return ask[*wire.Session](ctx, c, http.MethodGet, path("sessions", id), nil)
}

// Branches lists a session's branches.
func (c *Client) Branches(ctx context.Context, session string) ([]wire.Branch, jsontext.Value, error) {
	return ask[[]wire.Branch](ctx, c, http.MethodGet, path("sessions", session, "branches"), nil)
}

// Branch returns one branch.
func (c *Client) Branch(ctx context.Context, at wire.Scope) (*wire.Branch, jsontext.Value, error) {
	return ask[*wire.Branch](ctx, c, http.MethodGet, branchPath(at), nil)
}

// forker is the agent that the path of a fork names; none is needed.
const forker = "parley"

// Fork makes a branch of the messages up to one of them.
func (c *Client) Fork(ctx context.Context, from wire.Scope, in wire.ForkBranch) (*wire.Branch, jsontext.Value, error) {
	return ask[*wire.Branch](ctx, c, http.MethodPost, agentPath(forker, from)+"/fork", body(in))
}

// DeleteSession deletes a session with all that it has.
func (c *Client) DeleteSession(ctx context.Context, id string) error {
	return c.hub.Call(ctx, http.MethodDelete, path("sessions", id), nil, nil)
}

// DeleteBranch deletes a branch, with its forks if recursive.
func (c *Client) DeleteBranch(ctx context.Context, at wire.Scope, recursive bool) error {
	query := ""
	if recursive {
		query = "?recursive=true"
	}
	return c.hub.Call(ctx, http.MethodDelete, branchPath(at)+query, nil, nil)
}

// Input starts a run of an agent with a user's text.
func (c *Client) Input(ctx context.Context, agent string, at wire.Scope, text string) (wire.InputAccepted, error) {
	accepted, _, err := ask[wire.InputAccepted](ctx, c, http.MethodPost, agentPath(agent, at)+"/inputs", map[string]string{"text": text})
	return accepted, err
}

// History passes the stored events after a position to visit as they are read.
// The position is one of a stream, a sequence number, or empty.
func (c *Client) History(ctx context.Context, at wire.Scope, after string, visit func(event jsontext.Value) error) error {
	query := ""
	if after != "" {
		query = "?" + url.Values{"after": {after}}.Encode()
	}
	list, err := c.hub.Download(ctx, branchPath(at)+"/events"+query)
	if err != nil {
		return err
	}
	defer list.Close()
	d := jsontext.NewDecoder(list)
	for depth := 0; ; {
		if d.PeekKind() == '{' {
			event, err := d.ReadValue()
			if err == nil {
				err = visit(event)
			}
			if err != nil {
				return err
			}
			continue
		}
		token, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF) && depth == 0:
			return nil
		case err != nil:
			return err
		case token.Kind() == '[':
			depth++
		case token.Kind() == ']':
			depth--
		}
	}
}

// Follow passes the events of a branch to visit, from the start or after a
// position, and then as they arrive. It continues when the hub restarts:
// stored events come once and in order, live-only events of the interruption
// are lost. It ends with an error when the branch is deleted.
func (c *Client) Follow(ctx context.Context, at wire.Scope, after string, visit func(position string, event jsontext.Value) error) error {
	after = cmp.Or(after, "0")
	return c.hub.Follow(ctx, agentPath(forker, at)+"/events/live", after, func(f v1.Frame) error {
		return visit(f.ID, f.Data)
	})
}

// body encodes with the package that the wire types are made for.
func body(in any) any {
	data, err := json.Marshal(in)
	if err != nil {
		return in // the request fails in the same way
	}
	return jsontext.Value(data)
}
