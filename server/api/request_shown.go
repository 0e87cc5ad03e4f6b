package api

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/request"
)

// shownRequest is a request with the title of its channel.
type shownRequest struct {
	hub.Request
	ChannelTitle string `json:"channel_title"`
}

// shownRequest removes the data of dialects and adds the channel's title.
func (a *API) shownRequest(ctx context.Context, r hub.Request) (shownRequest, error) {
	shown := shownRequest{Request: withoutExt(r)}
	m, err := a.hub.Channel(ctx, r.Channel)
	if fault.CodeOf(err) == fault.NotFound {
		return shown, nil
	}
	if err != nil {
		return shown, err
	}
	if shown.ChannelTitle = labelled(m); shown.ChannelTitle != "" {
		return shown, nil
	}
	// The first text may not be visible to the participants of the request.
	sees, err := a.hub.Sight(ctx, r.Channel, slices.DeleteFunc([]string{r.AskedBy, r.For}, func(id string) bool { return id == "" }))
	if err == nil {
		shown.ChannelTitle, err = a.title(ctx, m, sees)
	}
	return shown, err
}

func withoutExt(r hub.Request) hub.Request {
	r.Ext = nil
	if r.Answer != nil {
		answer := *r.Answer
		answer.Ext = nil
		r.Answer = &answer
	}
	return r
}

// Kinds that are derived from what the hub waits for. They end when the agent they
// are for speaks, or answers the invitation.
const (
	kindTurn   = "turn"
	kindInvite = "invite"
)

// wait is a turn or an invitation in the form of a request, with its place in a list.
type wait struct {
	hub.Request
	place string
}

// validWait reports whether a text can be the place of a wait.
func validWait(text string) bool {
	return len(text) > 17 && len(text) < 200 && text[16] == '.' && strings.Trim(text[:16], "0123456789abcdef") == ""
}

// listWaits lists the turns that people are to take, or the invitations that they
// have not answered, the first due first.
func (a *API) listWaits(c *call, q hub.RequestQuery, newest bool, limit bounds, page *requestPage, show func(hub.Request) ([]byte, error)) error {
	position, err := a.hub.Now(c.Context())
	if err != nil {
		return err
	}
	page.Position = position.String()
	if err := a.watches.refresh(c.Context()); err != nil {
		return err
	}
	from := func(n int, after string, backward bool) ([]wait, string, error) {
		switch {
		case q.State != "" && q.State != request.Open, q.As == "" && q.For != "" && !a.hub.Human(q.For):
			return nil, "", nil
		case q.Kind == kindInvite:
			return a.invites(c.Context(), q, hub.InvitationQuery{After: after, Newest: newest != backward, Limit: n})
		}
		return a.turns(c.Context(), q, hub.ExpectedQuery{Agent: cmp.Or(q.As, q.For), After: after, Newest: newest != backward, Limit: n})
	}
	page.Requests, page.Prev, page.Next, err = bothWays(c, limit, validWait, func(w wait) string { return w.place }, from,
		func(w wait) ([]byte, error) { return show(w.Request) })
	if err != nil {
		return err
	}
	page.listTotal, err = c.total(func() (t hub.Total, err error) {
		for after := ""; ; {
			list, next, err := from(mostFetch, after, false)
			if err != nil {
				return t, err
			}
			for range list {
				if !t.Add() {
					return t, nil
				}
			}
			if after = next; next == "" || len(list) < mostFetch {
				t.Exact = next == ""
				return t, nil
			}
		}
	})
	return err
}

// waits reports whether a query selects what a person is expected to do.
func waits(q hub.RequestQuery, r *hub.Request) bool {
	r.ID, r.State = r.Kind+"."+r.Channel+"."+r.For, request.Open
	return (q.As == "" || q.As == r.For) && (q.For == "" || q.For == r.For) && (q.AskedBy == "" || q.AskedBy == r.AskedBy) &&
		(q.Channel == "" || q.Channel == r.Channel)
}

// invites lists the invitations that a query selects.
func (a *API) invites(ctx context.Context, q hub.RequestQuery, from hub.InvitationQuery) (list []wait, next string, err error) {
	from.Of = func(agent string) bool {
		if q.As != "" || q.For != "" {
			return agent == cmp.Or(q.As, q.For)
		}
		return a.hub.Human(agent)
	}
	found, next, err := a.hub.Invitations(ctx, from)
	for _, i := range found {
		r := hub.Request{
			Kind: kindInvite, Channel: i.Channel.ID, AskedBy: i.Channel.Creator, For: i.Agent, AskedAt: i.Channel.CreatedAt.UTC(), DueAt: i.Due.UTC(),
			Title: a.hub.Name(i.Channel.Creator) + " invites " + a.hub.Name(i.Agent), IfNobodyAnswers: "the channel is not opened",
		}
		if waits(q, &r) {
			list = append(list, wait{r, i.Place})
		}
	}
	return list, next, err
}

// maxWaitsScanned is how many turns a fetch of a narrow selection looks at.
const maxWaitsScanned = 1000

// turns lists the turns that a query selects.
func (a *API) turns(ctx context.Context, q hub.RequestQuery, from hub.ExpectedQuery) (list []wait, next string, err error) {
	for n, scanned := from.Limit, 0; ; from.After = next {
		from.Limit = n - len(list)
		var found []hub.ListedTurn
		if found, next, err = a.hub.ExpectedTurns(ctx, from); err != nil {
			return nil, "", err
		}
		for _, t := range found {
			m, err := a.hub.Channel(ctx, t.Channel)
			if fault.CodeOf(err) == fault.NotFound {
				continue
			}
			if err != nil {
				return nil, "", err
			}
			r := hub.Request{
				Kind: kindTurn, Channel: t.Channel, AskedBy: m.Creator, For: t.Agent, AskedAt: t.Since.UTC(), DueAt: t.Due.UTC(),
				Title: a.hub.Name(t.Agent) + " is expected to speak",
			}
			if waits(q, &r) {
				list = append(list, wait{r, t.Place})
			}
		}
		if scanned += from.Limit; next == "" || len(list) >= n || scanned >= maxWaitsScanned {
			return list, next, nil
		}
	}
}
