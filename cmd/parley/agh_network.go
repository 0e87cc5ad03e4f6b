package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
)

// network is the AGH network of a hub, for one workspace.
type network struct {
	hub       *v1.Client
	workspace string
}

// withNetwork is withHub for the commands about a workspace.
func (a *app) withNetwork(c *cobra.Command, fn func(ctx context.Context, n *network, args []string) error) *cobra.Command {
	var workspace string
	a.withHub(c, func(ctx context.Context, hub *v1.Client, args []string) error {
		if workspace == "" {
			return usageError("--workspace is empty; it is a workspace's id")
		}
		return fn(ctx, &network{hub, workspace}, args)
	})
	c.Flags().StringVar(&workspace, "workspace", "", "the workspace's `ID`")
	require(c, "workspace")
	return a.withForms(c)
}

// path returns a path of the workspace. Names are escaped.
func (n *network) path(names ...string) string {
	var b strings.Builder
	b.WriteString("/agh/workspaces/" + url.PathEscape(n.workspace) + "/network")
	for _, name := range names {
		b.WriteString("/" + segment(name))
	}
	return b.String()
}

// segment escapes a name for a path. Names of dots only would be taken for steps of
// the path.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// get requests a path; q may be nil.
func (n *network) get(ctx context.Context, path string, q url.Values) (json.RawMessage, error) {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	var raw json.RawMessage
	return raw, n.hub.Call(ctx, http.MethodGet, path, nil, &raw)
}

// post sends something, and returns the answer.
func (n *network) post(ctx context.Context, path string, body any) (json.RawMessage, error) {
	var raw json.RawMessage
	return raw, n.hub.Call(ctx, http.MethodPost, path, body, &raw)
}

// unwrap reads the one member of an answer. The raw form is what -o json prints.
func unwrap[T any](answer json.RawMessage, name string) (raw json.RawMessage, value T, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(answer, &members); err != nil {
		return nil, value, err
	}
	return members[name], value, json.Unmarshal(members[name], &value)
}

// mostShown is how much of a text a table shows.
const mostShown = 60

// brief returns a text for a cell of a table, truncated if it is long.
func brief(s string) string {
	if utf8.RuneCountInString(s) > mostShown {
		s = string([]rune(s)[:mostShown-1]) + "…"
	}
	return cell(s)
}

// agoText returns how long ago a time in AGH's format was.
func agoText(at string) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return orDash(at)
	}
	return ago(t)
}

// orDash returns a dash for an empty cell.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return cell(s)
}
