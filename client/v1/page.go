package v1

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Page is a part of a list.
type Page[T any] struct {
	Items []T
	Next  string            // the parameter "after" of the next page; empty: this is the last
	Names map[string]string // of the identities that the items mention, by id
	// Total is how many the query selects in all, if it has the parameter count; Exact
	// is false if there are at least so many.
	Total int
	Exact bool
	Raw   json.RawMessage // the answer as the hub sent it
}

// list asks for a page of /v1/what, whose items are in the given field.
func list[T any](ctx context.Context, c *Client, what, field string, query url.Values) (*Page[T], error) {
	page := &Page[T]{}
	if err := c.Call(ctx, http.MethodGet, "/v1/"+what+"?"+query.Encode(), nil, &page.Raw); err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(page.Raw, &fields); err != nil {
		return nil, err
	}
	for name, into := range map[string]any{field: &page.Items, "next": &page.Next, "names": &page.Names, "total": &page.Total, "total_exact": &page.Exact} {
		if raw, ok := fields[name]; ok {
			if err := json.Unmarshal(raw, into); err != nil {
				return nil, err
			}
		}
	}
	return page, nil
}

// get gets one object, and also returns the hub's answer unchanged.
func get[T any](ctx context.Context, c *Client, method, path string, body any) (*T, json.RawMessage, error) {
	var raw json.RawMessage
	if err := c.Call(ctx, method, path, body, &raw); err != nil {
		return nil, nil, err
	}
	into := new(T)
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, nil, err
	}
	return into, raw, nil
}
