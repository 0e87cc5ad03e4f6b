package api

import (
	"math"
	"net/http"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view"
)

type viewBody struct {
	View   string       `json:"view"`
	As     string       `json:"as"`
	Events []*viewEvent `json:"events"`
}

type viewEvent struct {
	Role    string       `json:"role"` // user, assistant or summary; in threads: the sender's name
	Text    string       `json:"text"`
	Elided  int          `json:"elided,omitzero"`
	ID      string       `json:"envelope_id,omitzero"`
	ReplyTo string       `json:"reply_to,omitzero"` // in threads, for replies that are not nested
	Thread  []*viewEvent `json:"replies,omitzero"`
}

// threaded is the only view that is not a transcript.
const threaded = "threaded"

// eyes returns the agent as which a channel is shown: the caller's, the one that the
// request names, or the channel's creator.
func (a *API) eyes(c *call) (m *channel.Metadata, as string, err error) {
	if m, err = a.see(c); err != nil {
		return nil, "", err
	}
	if as, err = a.viewer(c); err != nil {
		return nil, "", err
	}
	in, err := a.hub.Members(c.Context(), m.ID)
	if err != nil {
		return nil, "", err
	}
	if as == "" {
		as = m.Creator
		if !in.Has(as) {
			in.Each(func(agent string) bool { as = agent; return false })
		}
	}
	if !in.Has(as) {
		return nil, "", fault.New(fault.AccessDenied, "'%s' takes no part in channel '%s'", a.hub.Name(as), m.ID)
	}
	return m, as, nil
}

func (a *API) showView(c *call) error {
	m, as, err := a.eyes(c)
	if err != nil {
		return err
	}
	recent, err := c.number("recent_n", 0, math.MaxInt32)
	if err != nil {
		return err
	}
	body := viewBody{View: c.PathValue("name"), As: as, Events: []*viewEvent{}}
	if body.View == threaded {
		in, release, err := a.viewLog(c, m, as, 0)
		if err != nil {
			return err
		}
		defer release()
		body.Events = nestThreads(view.Threads(in), a.hub.Name)
		release()
		return c.write(http.StatusOK, body)
	}
	v, err := a.views.New(body.View, view.Params{Recent: recent, Participants: len(m.Participants)})
	if fault.CodeOf(err) == fault.NotFound {
		return fault.Wrap(fault.NotFound, err, "%v, %s", err, threaded)
	}
	if err != nil {
		return err
	}
	transcript, _ := v.(view.Transcript) // other views show everything
	in, release, err := a.viewLog(c, m, as, transcript.Recent())
	if err != nil {
		return err
	}
	defer release()
	for _, ev := range v.Project(in) {
		body.Events = append(body.Events, &viewEvent{Role: ev.Kind.String(), Text: ev.Text, Elided: ev.Elided})
	}
	release()
	return c.write(http.StatusOK, body)
}
