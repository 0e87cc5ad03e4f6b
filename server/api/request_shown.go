package api

import (
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

// maxWaits bounds how many are listed of each.
const maxWaits = 1000

// listWaits lists the turns that people are to take, or the invitations that they
// have not answered.
func (a *API) listWaits(c *call, q hub.RequestQuery, newest bool, limit bounds, page *requestPage, show func(hub.Request) ([]byte, error)) error {
	position, err := a.hub.Now(c.Context())
	if err != nil {
		return err
	}
	page.Position = position.String()
	var all []hub.Request
	if q.State == "" || q.State == request.Open {
		if all, err = a.waits(c, q); err != nil {
			return err
		}
	}
	if newest {
		slices.Reverse(all)
	}
	valid := func(id string) bool { return strings.HasPrefix(id, q.Kind+".") && len(id) < 200 }
	page.Requests, page.Prev, page.Next, err = bothWays(c, limit, valid, func(r hub.Request) string { return r.ID }, func(n int, after string, backward bool) ([]hub.Request, string, error) {
		list := all
		if backward {
			list = slices.Clone(all)
			slices.Reverse(list)
		}
		// If that one is gone, the list starts at the beginning.
		list = list[slices.IndexFunc(list, func(r hub.Request) bool { return r.ID == after })+1:]
		if len(list) <= n {
			return list, "", nil
		}
		return list[:n], list[n-1].ID, nil
	}, show)
	if err != nil {
		return err
	}
	page.listTotal, err = c.total(func() (hub.Total, error) { return hub.Total{Count: len(all), Exact: len(all) < maxWaits}, nil })
	return err
}

// waits returns the turns and invitations of people in the form of requests.
func (a *API) waits(c *call, q hub.RequestQuery) (all []hub.Request, err error) {
	ctx := c.Context()
	add := func(r hub.Request) {
		if (q.As == "" || q.As == r.For) && (q.For == "" || q.For == r.For) && (q.AskedBy == "" || q.AskedBy == r.AskedBy) &&
			(q.Channel == "" || q.Channel == r.Channel) && len(all) < maxWaits {
			r.ID, r.State = r.Kind+"."+r.Channel+"."+r.For, request.Open
			all = append(all, r)
		}
	}
	if q.Kind == kindInvite {
		invited := a.hub.People()
		if q.As != "" {
			invited = []string{q.As}
		}
		list, err := a.hub.Invitations(ctx, invited)
		if err != nil {
			return nil, err
		}
		for _, i := range list {
			add(hub.Request{
				Kind: kindInvite, Channel: i.Channel.ID, AskedBy: i.Channel.Creator, For: i.Agent, AskedAt: i.Channel.CreatedAt.UTC(), DueAt: i.Due.UTC(),
				Title: a.hub.Name(i.Channel.Creator) + " invites " + a.hub.Name(i.Agent), IfNobodyAnswers: "the channel is not opened",
			})
		}
		return all, nil
	}
	if err := a.watches.refresh(ctx); err != nil {
		return nil, err
	}
	turns := a.hub.PeoplesTurns()
	if q.As != "" {
		if turns, err = a.hub.ExpectedOf(ctx, q.As, maxWaits); err != nil {
			return nil, err
		}
	}
	for _, t := range turns {
		m, err := a.hub.Channel(ctx, t.Channel)
		if fault.CodeOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		add(hub.Request{
			Kind: kindTurn, Channel: t.Channel, AskedBy: m.Creator, For: t.Agent, AskedAt: t.Since.UTC(), DueAt: t.Due.UTC(),
			Title: a.hub.Name(t.Agent) + " is expected to speak",
		})
	}
	return all, nil
}
