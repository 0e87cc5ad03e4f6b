package main

import (
	"context"
	"maps"
	"net/url"

	v1 "github.com/parley-hub/parley/client/v1"
)

// mostEmptyPages bounds how far a command looks for the first that a filter selects.
const mostEmptyPages = 25

// firstPage asks for a page. The hub looks at a bounded number of entries for each:
// where a filter selects none of them, the next are asked for. A page that is still
// empty has a Next.
func firstPage[T any](ctx context.Context, q url.Values, list func(ctx context.Context, q url.Values) (*v1.Page[T], error)) (*v1.Page[T], error) {
	page, err := list(ctx, q)
	for n := 0; n < mostEmptyPages && err == nil && len(page.Items) == 0 && page.Next != ""; n++ {
		q = maps.Clone(q)
		q.Set("after", page.Next)
		page, err = list(ctx, q)
	}
	return page, err
}
