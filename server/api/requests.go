package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/request"
)

// askBody is a request to put to an agent. Names may be given instead of ids.
type askBody struct {
	Kind            string           `json:"kind"`
	AskedBy         string           `json:"asked_by"`
	For             string           `json:"for"`
	DueAt           time.Time        `json:"due_at"`
	IfNobodyAnswers string           `json:"if_nobody_answers"`
	AgentsMayAnswer bool             `json:"agents_may_answer"`
	Title           string           `json:"title"`
	Body            string           `json:"body"`
	Action          *askedAction     `json:"action"`
	Choices         []request.Choice `json:"choices"`
	Trigger         *request.Trigger `json:"trigger"`
	RunID           string           `json:"run_id"`
	IdempotencyKey  string           `json:"idempotency_key"`
}

type askedAction struct {
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
}

// ask makes a request in a channel. If it was made before with the same key, that one
// is returned as it is now.
func (a *API) ask(c *call) error {
	var body askBody
	if err := c.read(&body); err != nil {
		return err
	}
	if body.Kind == kindTurn || body.Kind == kindInvite {
		return fault.New(fault.Invalid, "kind=%q is the hub's own: it waits for a person whose turn it is, or who is invited; use another", body.Kind)
	}
	asker, err := a.actor(c, "asked_by", body.AskedBy)
	if err != nil {
		return err
	}
	key, err := c.key("idempotency_key", body.IdempotencyKey)
	if err != nil {
		return err
	}
	q := hub.Asking{Key: key, Request: hub.Request{
		Kind: body.Kind, Channel: c.PathValue("id"), AskedBy: asker, DueAt: body.DueAt, IfNobodyAnswers: body.IfNobodyAnswers,
		AgentsMayAnswer: body.AgentsMayAnswer, Title: body.Title, Body: body.Body, Choices: body.Choices, Trigger: body.Trigger, Run: body.RunID,
	}}
	if body.For != "" {
		p, err := a.agent(body.For)
		if err != nil {
			return err
		}
		q.For = p.ID()
	}
	if body.Action != nil {
		q.Action = &request.Action{Name: body.Action.Name, Arguments: unlessNull(body.Action.Arguments)}
	}
	asked, err := a.hub.Ask(c.Context(), q, c.who.hub())
	if err != nil {
		return err
	}
	shown, err := a.shownRequest(c.Context(), asked)
	if err != nil {
		return err
	}
	return c.write(http.StatusCreated, shown)
}

type requestPage struct {
	Requests []jsontext.Value  `json:"requests"`
	Prev     string            `json:"prev"`
	Next     string            `json:"next"`
	Position string            `json:"position"` // to start a stream from
	Names    map[string]string `json:"names"`    // of askers and asked agents, by id
	listTotal
}

func (a *API) listRequests(c *call) error {
	params := c.URL.Query()
	q := hub.RequestQuery{State: request.State(params.Get("state")), Kind: params.Get("kind"), Channel: params.Get("channel")}
	if q.State != "" && !q.State.Valid() {
		return fault.New(fault.Invalid, "state=%q is unknown; it is open, answered, expired or cancelled", q.State)
	}
	var err error
	if q.As, err = a.viewer(c); err != nil {
		return err
	}
	if q.For, err = a.agentParam(c, "for"); err != nil {
		return err
	}
	if q.AskedBy, err = a.agentParam(c, "asked_by"); err != nil {
		return err
	}
	switch sort := params.Get("sort"); sort {
	case "", "asked":
	case "due":
		q.ByDue = true
	default:
		return fault.New(fault.Invalid, "sort=%q is neither due nor asked", sort)
	}
	follow, err := c.wantsStream()
	if err != nil {
		return err
	}
	if follow {
		return a.followRequests(c, q)
	}
	limit, err := c.limit(a.cfg.Limits)
	if err != nil {
		return err
	}
	newest, err := c.flag("newest")
	if err != nil {
		return err
	}
	page := requestPage{Names: map[string]string{}}
	show := counted(c, func(r hub.Request) ([]byte, error) {
		for _, id := range []string{r.AskedBy, r.For} {
			if id != "" {
				page.Names[id] = a.hub.Name(id)
			}
		}
		shown, err := a.shownRequest(c.Context(), r)
		if err != nil {
			return nil, err
		}
		return encode(shown)
	})
	if q.Kind == kindTurn || q.Kind == kindInvite {
		err = a.listWaits(c, q, newest, limit, &page, show)
	} else {
		page.Requests, page.Prev, page.Next, err = bothWays(c, limit, envelope.ValidID, func(r hub.Request) string { return r.ID }, func(n int, after string, backward bool) ([]hub.Request, string, error) {
			q.Limit, q.After, q.Newest = n, after, newest != backward
			part, err := a.hub.Requests(c.Context(), q)
			if page.Position == "" {
				page.Position = part.Position.String()
			}
			return part.Requests, part.Next, err
		}, show)
		if err == nil {
			page.listTotal, err = c.total(func() (hub.Total, error) { return a.hub.RequestTotal(c.Context(), q) })
		}
	}
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, page)
}

// followRequests streams each request when it is made and when it ends.
func (a *API) followRequests(c *call, q hub.RequestQuery) error {
	var after hub.WidePosition
	var err error
	if text := c.resume(); text != "" {
		if after, err = hub.ParseWidePosition(text); err != nil {
			return err
		}
	}
	follow := func(ctx context.Context, after hub.WidePosition) (*hub.RequestFollower, error) {
		return a.hub.FollowRequests(ctx, q, after)
	}
	return acrossGaps(a, c, after, follow, a.streamRequests)
}

func (a *API) streamRequests(ctx context.Context, s stream, f *hub.RequestFollower) error {
	feed := startFeed(ctx, func(ctx context.Context, put func(hub.RequestEvent) bool) error {
		for {
			ev, err := f.Next(ctx)
			if err != nil || !put(ev) {
				return err
			}
		}
	}, func(hub.RequestEvent) int { return request.MaxBytes })
	defer feed.stop()
	return s.Run(ctx, func() (<-chan struct{}, error) {
		ev, wake, err := feed.tryNext()
		if err != nil || wake != nil {
			return wake, err
		}
		shown, err := a.shownRequest(ctx, ev.Request)
		if err != nil {
			return nil, err
		}
		data, err := encode(shown)
		if err != nil {
			return nil, err
		}
		s.Event(ev.Position.String(), "request", data)
		return nil, nil
	})
}

func (a *API) showRequest(c *call) error {
	r, err := a.hub.Request(c.Context(), c.PathValue("id"))
	if err != nil {
		return err
	}
	if !c.who.seesAll() {
		if c.who.id == "" {
			return errNotYours(c.who)
		}
		sees, err := a.hub.SeesRequest(c.Context(), &r, c.who.id)
		if err != nil {
			return err
		}
		if !sees {
			return errNotYours(c.who)
		}
	}
	shown, err := a.shownRequest(c.Context(), r)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, shown)
}

type answerBody struct {
	Choice string `json:"choice"`
	Text   string `json:"text"`
	As     string `json:"as"` // the identity that answers, by name or id; optional for an operator
	Note   string `json:"note"`
	Digest string `json:"digest"` // of the action that was shown
}

func (a *API) answerRequest(c *call) error {
	var body answerBody
	if err := c.read(&body); err != nil {
		return err
	}
	reply := hub.Answer{Choice: body.Choice, Text: body.Text, Note: body.Note, Digest: body.Digest}
	if body.As != "" || c.who.Agent != "" {
		var err error
		if reply.As, err = a.actor(c, "as", body.As); err != nil {
			return err
		}
	}
	r, err := a.hub.Answer(c.Context(), c.PathValue("id"), reply, c.who.hub())
	if ended, ok := errors.AsType[*hub.RequestEnded](err); ok {
		return endedError{ended}
	}
	if err != nil {
		return err
	}
	shown, err := a.shownRequest(c.Context(), r)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, shown)
}

// endedError carries the ended request to the problem.
type endedError struct{ *hub.RequestEnded }

func (e endedError) Unwrap() error { return e.RequestEnded }
func (e endedError) Carries() any  { return withoutExt(e.Request) }
