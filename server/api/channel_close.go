package api

import (
	"net/http"
	"net/url"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/server/problem"
)

// maxCloses is how many channels one call closes, and maxCloseFetches how many times it
// looks for them: each looks at a bounded number of channels.
const (
	maxCloses       = 1000
	maxCloseFetches = 16
)

// closeFilter selects channels as the parameters of the list do.
type closeFilter struct {
	Agent      string   `json:"agent"`
	Type       string   `json:"type"`
	State      []string `json:"state"`
	Label      []string `json:"label"`
	Q          string   `json:"q"`
	WaitingFor string   `json:"waiting_for"`
	Overdue    bool     `json:"overdue"`
	Channels   []string `json:"channel_ids"`
}

type closeManyBody struct {
	Filter closeFilter `json:"filter"`
	Reason string      `json:"reason"`
	Expect *int        `json:"expect"`
	DryRun bool        `json:"dry_run"`
	After  string      `json:"after"` // next of the call before
}

type closedMany struct {
	Matched int         `json:"matched"`
	Closed  int         `json:"closed"`
	Failed  []notClosed `json:"failed"`
	Next    string      `json:"next"` // continue after this one; empty: no more match
}

type notClosed struct {
	ChannelID string     `json:"channel_id"`
	Code      fault.Code `json:"code"`
	Detail    string     `json:"detail"`
}

// values returns the filter as parameters.
func (f *closeFilter) values() url.Values {
	q := url.Values{"state": f.State, "label": f.Label}
	for name, value := range map[string]string{"agent": f.Agent, "type": f.Type, "q": f.Q, "waiting_for": f.WaitingFor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Overdue {
		q.Set("overdue", "true")
	}
	return q
}

// closeChannels closes the channels that a filter selects. It first compares their
// number with the one the caller expects, so that channels opened meanwhile are not
// closed.
func (a *API) closeChannels(c *call) error {
	var body closeManyBody
	if err := c.read(&body); err != nil {
		return err
	}
	if body.After != "" && !channel.ValidID(body.After) {
		return fault.New(fault.Invalid, "after=%.100q is not a position in this list; send what the call before said as next", body.After)
	}
	if body.Expect == nil && !body.DryRun {
		return fault.New(fault.Invalid, "expect is missing: say how many channels are to be closed; dry_run tells how many match")
	}
	ids, next, err := a.closing(c, &body)
	if err != nil {
		return err
	}
	answer := closedMany{Matched: len(ids), Failed: []notClosed{}, Next: next}
	if body.Expect != nil && *body.Expect != len(ids) {
		match := "channels match"
		if len(ids) == 1 {
			match = "channel matches"
		}
		return fault.New(fault.Conflict, "%d %s, not %d; nothing was closed", len(ids), match, *body.Expect)
	}
	if body.DryRun {
		return c.write(http.StatusOK, answer)
	}
	for _, id := range ids {
		if _, err := a.as(c).CloseChannel(c.Context(), id, body.Reason); err != nil {
			answer.Failed = append(answer.Failed, notClosed{id, fault.CodeOf(err), problemText(err)})
			continue
		}
		answer.Closed++
	}
	return c.write(http.StatusOK, answer)
}

// closing lists the open channels to close, at most 1,000.
func (a *API) closing(c *call, body *closeManyBody) (ids []string, next string, err error) {
	if len(body.Filter.Channels) > maxCloses {
		return nil, "", fault.New(fault.Invalid, "channel_ids names %d channels; at most %d are closed with one call", len(body.Filter.Channels), maxCloses)
	}
	if body.Filter.Channels != nil {
		for _, id := range body.Filter.Channels {
			m, err := a.as(c).Channel(c.Context(), id)
			if err != nil {
				return nil, "", err
			}
			if !m.State.Terminal() {
				ids = append(ids, id)
			}
		}
		return ids, "", nil
	}
	asked := *c
	asked.Request = c.Clone(c.Context())
	asked.URL.RawQuery = body.Filter.values().Encode()
	o, err := a.channelFilter(&asked)
	if err != nil {
		return nil, "", err
	}
	o.Open, o.After = true, body.After
	if o.States == nil {
		o.States = []channel.Lifecycle{channel.Pending, channel.Active, channel.Closing}
	}
	for fetches := 1; ; fetches++ {
		o.Limit = maxCloses - len(ids)
		var page []hub.ListedChannel
		if page, next, err = a.as(c).ChannelPage(c.Context(), o); err != nil {
			return nil, "", err
		}
		for _, found := range page {
			ids = append(ids, found.ID)
		}
		if o.After = next; next == "" || len(ids) >= maxCloses || fetches == maxCloseFetches {
			return ids, next, nil
		}
	}
}

// problemText returns the text of a refusal.
func problemText(err error) string { return problem.Of(err).Detail }
