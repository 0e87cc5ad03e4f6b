package api

import (
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

type channelPage struct {
	Channels []jsontext.Value  `json:"channels"`
	Next     string            `json:"next"`     // empty at the end
	Prev     string            `json:"prev"`     // empty at the beginning
	Names    map[string]string `json:"names"`    // of the participants, by id
	Position string            `json:"position"` // to watch from
	listTotal
}

func (a *API) listChannels(c *call) error {
	o, err := a.channelFilter(c)
	if err != nil {
		return err
	}
	rows := false
	switch form := c.URL.Query().Get("form"); form {
	case "", "metadata":
	case "row":
		rows = true
	default:
		return fault.New(fault.Invalid, "form=%q is neither metadata nor row", form)
	}
	now, err := a.hub.Now(c.Context())
	if err != nil {
		return err
	}
	page := channelPage{Names: map[string]string{}, Position: now.String()}
	eyes := c.who.eyes()
	encode := func(found hub.ListedChannel) ([]byte, error) {
		if !rows {
			a.names(page.Names, found.Metadata)
			return found.AppendJSON(nil)
		}
		r, err := a.row(c.Context(), found.ID, eyes)
		if err != nil {
			return nil, err
		}
		a.names(page.Names, found.Metadata)
		return encode(r)
	}
	limit, err := c.limit(a.cfg.Limits)
	if err != nil {
		return err
	}
	place := func(found hub.ListedChannel) string { return found.Place }
	page.Channels, page.Prev, page.Next, err = bothWays(c, limit, o.Sort.ValidPlace, place, func(n int, after string, backward bool) ([]hub.ListedChannel, string, error) {
		o := o
		o.Limit, o.After, o.Newest = n, after, o.Newest != backward
		return a.as(c).ChannelPage(c.Context(), o)
	}, counted(c, encode))
	if err != nil {
		return err
	}
	if page.listTotal, err = c.total(func() (hub.Total, error) { return a.as(c).ChannelTotal(c.Context(), o) }); err != nil {
		return err
	}
	return c.write(http.StatusOK, page)
}

// sorts are the orders of channels.
var sorts = map[string]hub.ChannelSort{"": hub.ByAge, "created": hub.ByAge, "activity": hub.ByActivity, "due": hub.ByDue}

// channelFilter reads the filter's parameters.
func (a *API) channelFilter(c *call) (o hub.ListOptions, err error) {
	q := c.URL.Query()
	o.Type, o.Text = q.Get("type"), q.Get("q")
	if o.Newest, err = c.flag("newest"); err != nil {
		return o, err
	}
	if o.Overdue, err = c.flag("overdue"); err != nil {
		return o, err
	}
	var known bool
	if o.Sort, known = sorts[q.Get("sort")]; !known {
		return o, fault.New(fault.Invalid, "sort=%q is unknown; it is created, activity or due", q.Get("sort"))
	}
	if o.Label, err = c.labels(); err != nil {
		return o, err
	}
	if o.Agent, err = a.agentParam(c, "agent"); err != nil {
		return o, err
	}
	if err := statesOf(q["state"], &o); err != nil {
		return o, err
	}
	if err := a.waitingFor(c, &o); err != nil {
		return o, err
	}
	if !c.who.seesAll() {
		if o.Agent, err = c.who.itself(o.Agent); err != nil {
			return o, err
		}
	}
	if o.Sort == hub.ByDue { // the order depends on turns
		err = a.watches.refresh(c.Context())
	}
	return o, err
}

// statesOf reads the states. If all of them are open states, ended channels are not
// listed.
func statesOf(names []string, o *hub.ListOptions) error {
	o.Open = len(names) > 0
	for _, name := range names {
		state, err := stateOf(name)
		if err != nil {
			return err
		}
		if state == channel.Unset {
			continue
		}
		o.States = append(o.States, state)
		o.Open = o.Open && !state.Terminal()
	}
	o.Open = o.Open && len(o.States) > 0
	if o.Sort != hub.ByAge && slices.ContainsFunc(o.States, channel.Lifecycle.Terminal) {
		return fault.New(fault.Invalid, "channels that have ended are sorted by created only")
	}
	return nil
}

// people selects channels in which any person is expected to speak.
const people = "people"

func (a *API) waitingFor(c *call, o *hub.ListOptions) error {
	switch name := c.URL.Query().Get("waiting_for"); name {
	case "":
		if o.Overdue {
			o.Open = true
		}
	case people:
		o.WaitingFor = a.hub.People()
	default:
		id, err := a.agentParam(c, "waiting_for")
		if err != nil {
			return err
		}
		o.WaitingFor = []string{id}
	}
	return nil
}

// bothWays pages a list forward from after, or backward from before. The fetch
// function lists in either direction.
func bothWays[T any](c *call, limit bounds, valid func(string) bool, place func(T) string,
	from func(n int, after string, backward bool) ([]T, string, error), encode func(T) ([]byte, error),
) (list []jsontext.Value, prev, next string, err error) {
	after, err := c.page(valid)
	if err != nil {
		return nil, "", "", err
	}
	before := c.URL.Query().Get("before")
	switch {
	case before != "" && after != "":
		return nil, "", "", fault.New(fault.Invalid, "after and before are both given; give one of them")
	case before != "" && !valid(before):
		return nil, "", "", fault.New(fault.Invalid, "before=%.100q is not a position in this list; send what a page said as prev, or leave it out", before)
	}
	var first string
	list, end, err := gather(limit, after+before, func(n int, at string) ([]T, string, error) { return from(n, at, before != "") }, func(item T) ([]byte, error) {
		data, err := encode(item)
		if err == nil && first == "" {
			first = place(item)
		}
		return data, err
	})
	if err != nil {
		return nil, "", "", err
	}
	if before != "" {
		slices.Reverse(list)
		return list, end, first, nil
	}
	if after == "" {
		first = ""
	}
	return list, first, end, nil
}
