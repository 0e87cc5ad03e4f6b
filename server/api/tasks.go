package api

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/task"
)

type taskPage struct {
	Tasks []jsontext.Value `json:"tasks"`
	Next  string           `json:"next"`
	Prev  string           `json:"prev"`
	listTotal
}

func (a *API) listTasks(c *call) error {
	limit, err := c.limit(a.cfg.Limits)
	if err != nil {
		return err
	}
	params := c.URL.Query()
	q := hub.TaskQuery{Channel: params.Get("channel")}
	for _, name := range params["state"] {
		state, err := task.ParseState(name)
		if name != "" && err != nil {
			return fault.Wrap(fault.Invalid, err, "state=%q is unknown; it is created, running, completed, failed, expired or cancelled", name)
		}
		if name != "" {
			q.States = append(q.States, state)
		}
	}
	if q.Newest, err = c.flag("newest"); err != nil {
		return err
	}
	if q.Owner, err = a.agentParam(c, "owner"); err != nil {
		return err
	}
	if !c.who.seesAll() {
		if _, err := c.who.itself(""); err != nil {
			return err
		}
	}
	var page taskPage
	place := func(t hub.ListedTask) string { return t.Place }
	page.Tasks, page.Prev, page.Next, err = bothWays(c, limit, envelope.ValidID, place, func(n int, after string, backward bool) ([]hub.ListedTask, string, error) {
		q := q
		q.Limit, q.After, q.Newest = n, after, q.Newest != backward
		return a.as(c).TaskPage(c.Context(), q)
	}, counted(c, func(t hub.ListedTask) ([]byte, error) { return encode(t.Task) }))
	if err != nil {
		return err
	}
	if page.listTotal, err = c.total(func() (hub.Total, error) { return a.as(c).TaskTotal(c.Context(), q) }); err != nil {
		return err
	}
	return c.write(http.StatusOK, page)
}

// task returns a task that the caller may see.
func (a *API) task(c *call) (*task.Task, error) {
	t, err := a.as(c).Task(c.Context(), c.PathValue("id"))
	if fault.CodeOf(err) == fault.AccessDenied {
		return nil, errNotYours(c.who)
	}
	return t, err
}

func (a *API) showTask(c *call) error {
	t, err := a.task(c)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, t)
}

type cancelBody struct {
	By     string `json:"by"` // the identity that requests it, by name or id; default: the channel's creator
	Reason string `json:"reason"`
}

// cancelTask requests a task's owner to stop; the owner decides.
func (a *API) cancelTask(c *call) error {
	var body cancelBody
	if err := c.readOptional(&body); err != nil {
		return err
	}
	t, err := a.task(c)
	if err != nil {
		return err
	}
	if t.State.Terminal() {
		return fault.New(fault.Protocol, "task '%s' is already %s", t.ID, t.State)
	}
	if t.Channel == "" {
		return fault.New(fault.Protocol, "task '%s' has no associated channel through which its owner could be asked", t.ID)
	}
	m, err := a.hub.Channel(c.Context(), t.Channel)
	if err != nil {
		return err
	}
	if body.By == "" && c.who.Agent == "" {
		body.By = m.Creator
	}
	sender, err := a.actor(c, "by", body.By)
	if err != nil {
		return err
	}
	data, err := cancelData(t.ID, body.Reason)
	if err != nil {
		return err
	}
	id, err := a.post(c, &envelope.Envelope{
		Channel: t.Channel, Sender: sender, Type: envelope.TypeTaskCancelRequest, Task: t.ID,
		Audience: []string{t.Owner}, Data: data,
	})
	if err != nil {
		return err
	}
	return c.write(http.StatusAccepted, sentBody{EnvelopeID: id})
}

func cancelData(task, reason string) ([]byte, error) {
	data, err := jsontext.AppendQuote([]byte(`{"task_id":`), task)
	if err == nil {
		data, err = jsontext.AppendQuote(append(data, `,"reason":`...), reason)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "reason is not valid UTF-8")
	}
	return append(data, '}'), nil
}
