package api

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/hub"
)

// How many entries are fetched at once: few at first, because each may be large.
const (
	firstFetch = 16
	mostFetch  = 64
)

// fetch returns up to n entries after a place, and the place to continue from; empty:
// the end.
type fetch[T any] func(n int, after string) (list []T, next string, err error)

// bounds limit the entries and bytes of a page, so that the memory for an answer does
// not grow with what is stored. A page has at least one entry, of whatever size.
type bounds struct{ entries, bytes int }

// gather fetches a page.
func gather[T any](limit bounds, after string, from fetch[T], encode func(T) ([]byte, error)) ([]jsontext.Value, string, error) {
	page, size := []jsontext.Value{}, 0
	for n := firstFetch; ; {
		asked := min(n, limit.entries-len(page))
		list, next, err := from(asked, after)
		if err != nil {
			return nil, "", err
		}
		fit, more := page, size
		for _, item := range list {
			data, err := encode(item)
			if err != nil {
				return nil, "", err
			}
			if more += len(data); more > limit.bytes && len(fit) > 0 {
				break
			}
			fit = append(fit, data)
		}
		switch fits := len(fit) - len(page); {
		case fits == len(list):
			page, size, after, n = fit, more, next, min(2*n, mostFetch)
		case fits > 0:
			n = fits // fetch only those, to learn where they end
			continue
		default:
			return page, after, nil
		}
		// A fetch with narrow filters may be short: it is bounded, and so is the page.
		if after == "" || len(page) >= limit.entries || len(list) < asked {
			return page, after, nil
		}
	}
}

// listTotal is how many entries the whole list has.
type listTotal struct {
	Total *int `json:"total"`       // null unless it was asked for
	Exact bool `json:"total_exact"` // false: at least so many
}

// total counts a list if the caller requests it.
func (c *call) total(count func() (hub.Total, error)) (listTotal, error) {
	asked, err := c.flag("count")
	if err != nil || !asked {
		return listTotal{}, err
	}
	t, err := count()
	return listTotal{&t.Count, t.Exact}, err
}
