package hpd

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/request"
)

// Canonical returns an input as a canonical message: the texts of its messages, in
// their order. Other contents are named.
func Canonical(in *wire.Input) message.Envelope {
	var lines []string
	for i := range in.Messages {
		for j := range in.Messages[i].Contents {
			if text := contentText(&in.Messages[i].Contents[j]); text != "" {
				lines = append(lines, text)
			}
		}
	}
	return message.Envelope{Type: message.TypeText, Role: message.RoleUser, Content: strings.Join(lines, "\n")}
}

func contentText(c *wire.Content) string {
	if c.Text != nil {
		return *c.Text
	}
	parts := []string{c.Type}
	for _, text := range []*string{c.MediaType, c.Name, c.URI} {
		if text != nil {
			parts = append(parts, *text)
		}
	}
	return channel.Attachment(parts...)
}

// postInput posts an input to a channel of another dialect, as the caller. The run
// that it begins is shown and not stored: its id is that of the envelope.
func (f *foreign) postInput(c *call) error {
	s := f.server
	in, err := s.readInput(c)
	if err != nil {
		return err
	}
	id, err := f.say(c.Context(), in, c.who)
	if err != nil {
		return f.explain(c, err)
	}
	s.locationOfRun(c, f.meta.ID, wire.MainBranch, id)
	return c.write(http.StatusAccepted, wire.InputAccepted{RuntimeRunID: id, StartedAt: s.now()})
}

// say posts an input and returns its envelope's id once it is durable.
func (f *foreign) say(ctx context.Context, in *wire.Input, who Who) (string, error) {
	s := f.server
	by, err := s.actor(ctx, who)
	if err != nil {
		return "", err
	}
	saying := hub.Saying{
		Channel: f.meta.ID, Sender: by, Message: Canonical(in), Origin: envelope.Origin{Dialect: dialectName},
	}
	if id := deref(in.ClientInputID); id != "" {
		saying.Origin.ID = by + "/" + id // other identities may choose the same id
	}
	return s.hub.Say(ctx, saying, caller(who, by)).Wait(ctx)
}

// explain turns temporary refusals into conflicts, and says whose turn it is.
func (f *foreign) explain(c *call, err error) error {
	switch fault.ReasonOf(err) {
	case fault.ChannelEnded:
		return c.refuse(http.StatusConflict, c.code, err.Error())
	case fault.OutOfTurn:
		text := err.Error()
		if turn, ok, lookErr := f.server.hub.Expected(c.Context(), f.meta.ID); lookErr == nil && ok && turn.Agent != "" && f.name(turn.Agent) != c.who.Agent {
			text += "; it is the turn of '" + f.name(turn.Agent) + "'"
		}
		return c.refuse(http.StatusConflict, wire.OutOfTurn, text)
	}
	return err
}

// listRequests lists the open requests of the channel.
func (f *foreign) listRequests(c *call) error {
	s := f.server
	page, err := s.hub.Requests(c.Context(), hub.RequestQuery{Channel: f.meta.ID, State: request.Open, Limit: s.cfg.Limits.Requests})
	if err != nil {
		return err
	}
	list := []wire.OpenRequest{}
	for i := range page.Requests {
		r := &page.Requests[i]
		if !f.sees(r) {
			continue
		}
		event := wire.Event{Payload: requestEvent(r, f.name(r.AskedBy))}
		event.Scope = wire.Scope{Session: f.meta.ID, Branch: wire.MainBranch}
		shown, err := event.Append(nil, c.surface)
		if err != nil {
			return fault.Wrap(fault.Internal, err, "%v", err)
		}
		list = append(list, wire.OpenRequest{RequestID: r.ID, Request: shown, AskedAt: r.AskedAt, DueAt: r.DueAt, Policy: wire.FirstValidResponseWins})
	}
	return c.write(http.StatusOK, list)
}

// sees reports whether the caller may see a request of the channel. A request
// to one identity is shown to it, to its asker and to callers that see
// everything.
func (f *foreign) sees(r *hub.Request) bool {
	return r.Channel == f.meta.ID && (f.as == "" || r.For == "" || r.For == f.as || r.AskedBy == f.as)
}

func (f *foreign) postResponse(c *call) error {
	e, err := f.server.readResponse(c)
	if err != nil {
		return notTaken(c, err)
	}
	result, err := f.respond(c.Context(), e, c.who)
	if err != nil {
		return notTaken(c, err)
	}
	if !result.Accepted {
		return &refusal{wire.Refused(result)}
	}
	return c.write(http.StatusOK, result)
}

// respond answers a request of the channel, as the caller.
func (f *foreign) respond(ctx context.Context, e *wire.Event, who Who) (wire.RespondResult, error) {
	answer, ok := wire.ResponseOf(e)
	if !ok {
		return wire.RespondResult{}, fault.New(fault.Invalid, "%s is not a response", e.Payload.EventType())
	}
	status, err := f.answer(ctx, &answer, e, who)
	result := wire.RespondResult{RequestID: answer.RequestID, Status: status, Accepted: status == wire.Accepted}
	if !result.Accepted {
		result.Message = new("The response was not accepted: " + string(status) + ".")
	}
	return result, err
}

func (f *foreign) answer(ctx context.Context, answer *wire.Response, e *wire.Event, who Who) (wire.RespondStatus, error) {
	s := f.server
	r, err := s.hub.Request(ctx, answer.RequestID)
	switch {
	case fault.CodeOf(err) == fault.NotFound || err == nil && !f.sees(&r):
		return wire.NotFound, nil
	case err != nil:
		return "", err
	case r.State != request.Open:
		return statusOf(&r), nil
	}
	event := wire.Event{Payload: requestEvent(&r, "")}
	q, _ := wire.RequestOf(&event)
	if status := q.Judge(answer); status != wire.Accepted {
		return status, nil
	}
	given, ok := chosen(&r, e)
	if !ok {
		return wire.ResponseTypeMismatch, nil // it is none of the choices
	}
	if given.As, err = s.actor(ctx, who); err != nil {
		return "", err
	}
	_, err = s.hub.Answer(context.WithoutCancel(ctx), r.ID, given, s.callerOf(who))
	var ended *hub.RequestEnded
	switch {
	case err == nil:
		return wire.Accepted, nil
	case errors.As(err, &ended):
		return statusOf(&ended.Request), nil
	case fault.CodeOf(err) == fault.AccessDenied:
		return wire.TargetMismatch, nil
	}
	return "", err
}
