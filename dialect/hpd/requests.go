package hpd

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/request"
	"github.com/parley-hub/parley/view/branch"
)

// Waiting times of requests.
const (
	defaultTimeout = 5 * time.Minute
	maxTimeout     = 24 * time.Hour
)

// askExt is the dialect's part of a request in the hub.
type askExt struct {
	RequestID string   `json:"requestId"`
	Run       string   `json:"runtimeRunId"`
	Request   wire.Raw `json:"request"` // its envelope
}

// kinds are the hub's kinds of requests, by event type.
var kinds = map[string]string{
	branch.PermissionRequest: request.Permission, branch.ContinuationRequest: request.Continuation,
	branch.ClarificationRequest: request.Clarification, branch.ClientToolInvokeRequest: request.ClientTool,
}

// ask stores a request, and shows it once it can be answered. It calls done once:
// with the answer, or without one if the request ended otherwise.
func (s *Server) ask(ctx context.Context, x *run, e *wire.Event, timeout time.Duration, done func(*wire.Event, hub.Request)) (*asked, error) {
	q, ok := wire.RequestOf(e)
	if !ok || q.RequestID == "" {
		return nil, fault.New(fault.Invalid, "%s is not a request with an id", e.Payload.EventType())
	}
	x.stamp(&e.Base, false)
	e.Timestamp = wire.FormatTime(s.now())
	envelope, err := e.Append(nil, wire.Branches)
	if err != nil {
		return nil, err
	}
	ext, err := marshal(askExt{RequestID: q.RequestID, Run: x.id, Request: envelope})
	if err != nil {
		return nil, err
	}
	a := &asked{request: q, run: x, told: make(chan struct{})}
	if !s.asks.add(a) {
		return nil, fault.New(fault.Conflict, "Request '%s' is open already.", q.RequestID)
	}
	x.mu.Lock()
	over := x.ended || x.interrupted != ""
	x.asked = true
	x.mu.Unlock()
	if over {
		s.forget(a)
		return nil, errRunOver(x.id)
	}
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	timeout = min(timeout, maxTimeout)
	asking := question(e)
	asking.Channel, asking.AskedBy, asking.Run, asking.Ext = x.scope.channel, x.agent, x.id, ext
	asking.Kind, asking.AgentsMayAnswer, asking.DueAt = kinds[q.Type], true, s.now().Add(timeout)
	stored, err := s.hub.Ask(ctx, hub.Asking{Request: asking}, trusted)
	if err != nil {
		s.forget(a)
		return nil, err
	}
	a.id = stored.ID
	s.background.Go(func() { s.awaitAnswer(a, timeout, done) })
	if err := s.showRequest(ctx, a, e); err != nil {
		s.log.Warn("a request was not shown", "error", err)
	}
	return a, nil
}

// showRequest shows a request after the event that starts it.
func (s *Server) showRequest(ctx context.Context, a *asked, e *wire.Event) error {
	q := a.request
	err := s.tellRequest(ctx, a.run, wire.AgentRequestStarted{
		RequestID: q.RequestID, SourceName: q.SourceName, RequestEventType: q.Type, ExpectedResponseEventType: q.Expects,
		ResponsePolicy: q.Policy, Target: q.Target, Visibility: q.Visibility, StartedAt: s.now(),
	})
	if err != nil {
		return err
	}
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	return s.show(ctx, a.run, e)
}

// tellRequest shows a change of a request: live, and in the history if the settings
// say so.
func (s *Server) tellRequest(ctx context.Context, x *run, p wire.Payload) error {
	e := &wire.Event{Payload: p}
	data, err := e.Data()
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return nil // nothing may follow a run's end
	}
	if !s.cfg.Registry.Table.Durable(p.EventType(), data, true) {
		return s.show(ctx, x, e)
	}
	sender, err := s.user(ctx)
	if err != nil {
		return err
	}
	stored, err := made(x.scope.channel, sender, x.turn, p, branch.Ext{})
	if err != nil {
		return err
	}
	_, err = s.hub.Admit(ctx, stored, trusted).Wait(ctx)
	return err
}

// awaitAnswer waits until a request has ended, shows its end, and passes on the
// answer.
func (s *Server) awaitAnswer(a *asked, timeout time.Duration, done func(*wire.Event, hub.Request)) {
	r, err := s.hub.AwaitRequest(s.ctx, a.id)
	if err != nil {
		if s.ctx.Err() == nil && !hub.Deleted(err) {
			s.log.Warn("a request is not watched any more", "error", err)
		}
		s.forget(a)
		done(nil, r)
		return
	}
	var tell wire.Payload
	var response *wire.Event
	q := a.request
	switch r.State {
	case request.Answered:
		if response, err = s.responseOf(s.ctx, a, &r); err != nil {
			s.log.Error("an answer cannot be read", "error", err)
			s.forget(a)
			done(nil, r)
			return
		}
		answer, _ := wire.ResponseOf(response)
		resolved := wire.AgentRequestResolved{
			RequestID: q.RequestID, SourceName: q.SourceName, RequestEventType: q.Type, ResponseEventType: q.Expects, ResolvedAt: r.Answer.At,
		}
		if answer.ResponderID != "" {
			resolved.ResponderID = &answer.ResponderID
		}
		if answer.ResponderGroup != "" {
			resolved.ResponderGroup = &answer.ResponderGroup
		}
		tell = resolved
	case request.Expired:
		tell = wire.AgentRequestExpired{RequestID: q.RequestID, SourceName: q.SourceName, RequestEventType: q.Type, Timeout: wire.Duration(timeout), ExpiredAt: s.now()}
	default:
		reason := r.Reason
		tell = wire.AgentRequestCancelled{RequestID: q.RequestID, SourceName: q.SourceName, RequestEventType: q.Type, Reason: &reason, CancelledAt: s.now()}
	}
	defer s.forget(a)
	if err := s.tellRequest(s.ctx, a.run, tell); err != nil && !hub.Deleted(err) && s.ctx.Err() == nil {
		s.log.Warn("the end of a request was not shown", "error", err)
	}
	done(response, r)
}

// forget removes the dialect's part of a request.
func (s *Server) forget(a *asked) {
	s.asks.remove(a)
	close(a.told)
}

// listRequests lists the open requests of a branch, also after a reload.
func (s *Server) listRequests(c *call, x *scope) error {
	page, err := s.hub.Requests(c.Context(), hub.RequestQuery{Channel: x.channel, State: request.Open, Limit: s.cfg.Limits.Requests})
	if err != nil {
		return err
	}
	list := []wire.OpenRequest{}
	for _, r := range page.Requests {
		var ext askExt
		if json.Unmarshal(r.Ext, &ext) != nil || ext.RequestID == "" {
			continue
		}
		open := wire.OpenRequest{RequestID: ext.RequestID, RuntimeRunID: ext.Run, Request: ext.Request, AskedAt: r.AskedAt, DueAt: r.DueAt, Policy: wire.FirstValidResponseWins}
		if e, err := s.cfg.Registry.Parse(ext.Request, s.wireLimits()); err == nil {
			if q, ok := wire.RequestOf(e); ok {
				open.Policy = q.Policy
			}
			if shown, err := e.Append(nil, c.surface); err == nil {
				open.Request = shown
			}
		}
		list = append(list, open)
	}
	return c.write(http.StatusOK, list)
}

// Ask sends a request and waits for its answer. It returns an error if none arrives
// in time or the run is interrupted.
func (r *Run) Ask(ctx context.Context, question wire.Payload, timeout time.Duration) (wire.Payload, error) {
	if kept, err := r.server.decided(ctx, r.run, question); kept != nil || err != nil {
		return kept, err
	}
	type end struct {
		response *wire.Event
		request  hub.Request
	}
	ended := make(chan end, 1)
	_, err := r.server.ask(ctx, r.run, &wire.Event{Payload: question}, timeout, func(e *wire.Event, q hub.Request) { ended <- end{e, q} })
	if err != nil {
		return nil, err
	}
	select {
	case got := <-ended:
		if got.response == nil {
			return nil, &RunError{Type: string(statusOf(&got.request)), Message: "the request was not answered: " + string(statusOf(&got.request))}
		}
		return got.response.Payload, r.server.decide(ctx, r.run, question, got.response.Payload)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// adoptRequests takes over the requests that a run sent in an earlier process: it
// waits for open requests, and keeps answers that may not have been passed on.
func (s *Server) adoptRequests(ctx context.Context, x *run) error {
	page, err := s.hub.Requests(ctx, hub.RequestQuery{Channel: x.scope.channel, Newest: true, Limit: s.cfg.Limits.Requests})
	if err != nil {
		return err
	}
	for _, r := range slices.Backward(page.Requests) { // in the order of asking
		var ext askExt
		if r.Run != x.id || json.Unmarshal(r.Ext, &ext) != nil {
			continue
		}
		e, err := s.cfg.Registry.Parse(ext.Request, s.wireLimits())
		if err != nil {
			continue
		}
		q, ok := wire.RequestOf(e)
		if !ok {
			continue
		}
		a := &asked{id: r.ID, request: q, run: x, told: make(chan struct{})}
		switch {
		case r.State == request.Answered:
			response, err := s.responseOf(ctx, a, &r)
			if err != nil {
				return err
			}
			x.answers = append(x.answers, response)
		case r.State == request.Open && s.asks.add(a):
			s.background.Go(func() {
				s.awaitAnswer(a, r.DueAt.Sub(r.AskedAt), func(response *wire.Event, _ hub.Request) { s.answered(x, response) })
			})
		}
	}
	return nil
}
