package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/charmbracelet/x/ansi"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/fault"
)

const (
	lookedThrough = 10    // pages of a list that are searched for a prefix of an id
	lookedPage    = "500" // items of each
)

// item is an entry of a list that a person named by a prefix of its id.
type item struct{ id, state, title string }

// findItem returns the id of the request or task that a person named: by its id or by
// an unambiguous prefix of it, as lists show it. Only the newest are searched.
func findItem(ctx context.Context, what, ref string, exists func(ctx context.Context, id string) error, list func(ctx context.Context, q url.Values) ([]item, string, error)) (string, error) {
	missing := exists(ctx, ref)
	if fault.CodeOf(missing) != fault.NotFound || len(ref) < minIDPrefix {
		return ref, missing
	}
	var found []item
	q := url.Values{"newest": {"true"}, "limit": {lookedPage}}
	for range lookedThrough {
		page, next, err := list(ctx, q)
		if err != nil {
			return "", err
		}
		for _, i := range page {
			if strings.HasPrefix(i.id, ref) {
				found = append(found, i)
			}
		}
		if next == "" || len(found) > maxCandidates {
			break
		}
		q.Set("after", next)
	}
	switch len(found) {
	case 0:
		return "", missing
	case 1:
		return found[0].id, nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "several %ss begin with %q; say which by more of its id:", what, ref)
	for n, i := range found {
		if n == maxCandidates {
			b.WriteString("\n  and more")
			break
		}
		fmt.Fprintf(&b, "\n  %s  %s  %s", cell(i.id), i.state, ansi.Truncate(cell(i.title), 2*maxTitle, "…"))
	}
	return "", fault.New(fault.Invalid, "%s", b.String())
}

// findRequest returns the id of the request that a person named.
func findRequest(ctx context.Context, hub *v1.Client, ref string) (string, error) {
	exists := func(ctx context.Context, id string) error {
		_, _, err := hub.Request(ctx, id)
		return err
	}
	return findItem(ctx, "request", ref, exists, func(ctx context.Context, q url.Values) ([]item, string, error) {
		page, err := hub.Requests(ctx, q)
		if err != nil {
			return nil, "", err
		}
		items := make([]item, len(page.Items))
		for i, r := range page.Items {
			items[i] = item{r.ID, string(r.State), r.Title}
		}
		return items, page.Next, nil
	})
}

// findTask returns the id of the task that a person named.
func findTask(ctx context.Context, hub *v1.Client, ref string) (string, error) {
	exists := func(ctx context.Context, id string) error {
		_, err := hub.Task(ctx, id)
		return err
	}
	return findItem(ctx, "task", ref, exists, func(ctx context.Context, q url.Values) ([]item, string, error) {
		page, err := hub.Tasks(ctx, q)
		if err != nil {
			return nil, "", err
		}
		items := make([]item, len(page.Items))
		for i, t := range page.Items {
			items[i] = item{t.ID, t.State, t.Spec.Title}
		}
		return items, page.Next, nil
	})
}

// requestID is the id of a request in a list; turns and invitations are answered in their
// channel, and have none that a command takes.
func (a *app) requestID(r *v1.Request) string {
	if (r.Kind == "turn" || r.Kind == "invite") && !a.wideOutput() {
		return "-"
	}
	return cell(r.ID)
}
