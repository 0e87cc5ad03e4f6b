package hpd

import (
	"context"
	"errors"
	"net/http"
	"sync"
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

// asked is a request of a run. The hub keeps it; this is what the dialect knows
// of it besides.
type asked struct {
	id      string // the hub's
	request wire.Request
	run     *run

	told chan struct{} // closed when its end was shown

	mu       sync.Mutex
	response *wire.Event // the answer, once there is one
}

// asks are the requests of runs of this process, by channel and request id. Those
// that ended are found again in the hub.
type asks struct {
	mu  sync.Mutex
	all map[[2]string]*asked
}

func (a *asks) get(channelID, id string) *asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[[2]string{channelID, id}]
}

// add registers a request; it answers false where one of that id is open.
func (a *asks) add(x *asked) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := [2]string{x.run.scope.channel, x.request.RequestID}
	if a.all[key] != nil {
		return false
	}
	if a.all == nil {
		a.all = map[[2]string]*asked{}
	}
	a.all[key] = x
	return true
}

func (a *asks) remove(x *asked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := [2]string{x.run.scope.channel, x.request.RequestID}
	if a.all[key] == x {
		delete(a.all, key)
	}
}

// of are the requests of a run that are open.
func (a *asks) of(x *run) []*asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []*asked
	for _, one := range a.all {
		if one.run == x {
			list = append(list, one)
		}
	}
	return list
}

// askExt is the dialect's part of a request in the hub.
type askExt struct {
	RequestID string   `json:"requestId"`
	Run       string   `json:"runtimeRunId"`
	Request   wire.Raw `json:"request"` // its envelope
}

// answerExt is the dialect's part of an answer; a large one is in memory only.
type answerExt struct {
	Response wire.Raw `json:"response,omitzero"`
}

const largeAnswer = 40 << 10

// kinds of requests, as the hub calls them.
var kinds = map[string]string{
	branch.PermissionRequest: request.Permission, branch.ContinuationRequest: request.Continuation,
	branch.ClarificationRequest: request.Clarification, branch.ClientToolInvokeRequest: request.ClientTool,
}

// ask stores a request, and shows it once it can be answered. Done is called
// once with the answer, or without one where the request ended otherwise.
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

// showRequest shows a request with its beginning.
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

// tellRequest tells of a request's life: live, and in the history where the
// settings say so.
func (s *Server) tellRequest(ctx context.Context, x *run, p wire.Payload) error {
	e := &wire.Event{Payload: p}
	data, err := e.Data()
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return nil // nothing follows a run's end
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

// awaitAnswer waits until a request has ended, tells it, and hands the answer
// over.
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
		response = s.responseOf(a, &r)
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

// forget ends the dialect's part of a request.
func (s *Server) forget(a *asked) {
	s.asks.remove(a)
	close(a.told)
}

// responseOf is the answer as a response event: the client's own, or one made
// of what was answered on another surface.
func (s *Server) responseOf(a *asked, r *hub.Request) *wire.Event {
	a.mu.Lock()
	e := a.response
	a.mu.Unlock()
	if e != nil {
		return e
	}
	var ext answerExt
	if json.Unmarshal(r.Answer.Ext, &ext) == nil && len(ext.Response) > 0 {
		if e, err := s.cfg.Registry.Parse(ext.Response, s.wireLimits()); err == nil {
			return e
		}
	}
	return madeResponse(&a.request, r.Answer)
}

// statusOf is what became of an answer to a request that has ended.
func statusOf(r *hub.Request) wire.RespondStatus {
	switch r.State {
	case request.Answered:
		return wire.AlreadyResolved
	case request.Expired:
		return wire.TimedOut
	case request.Cancelled:
		return wire.Cancelled
	}
	return wire.NotFound
}

// respond takes an answer. The error is a refusal; otherwise the result says
// what became of it.
func (s *Server) respond(ctx context.Context, at *scope, e *wire.Event, who Who) (wire.RespondResult, error) {
	answer, ok := wire.ResponseOf(e)
	if !ok {
		return wire.RespondResult{}, fault.New(fault.Invalid, "%s is not a response", e.Payload.EventType())
	}
	result := wire.RespondResult{RequestID: answer.RequestID, Status: wire.NotFound}
	a := s.asks.get(at.channel, answer.RequestID)
	switch a {
	case nil:
		before, err := s.askedBefore(ctx, at, answer.RequestID)
		if err != nil {
			return result, err
		}
		if before == nil && s.runs.get(at.channel) == nil {
			s.reject(ctx, at, &answer, wire.NotFound)
			return result, &refusal{wire.NoRuntime(wire.Branches, "No run is active on branch '"+at.branch+"'.")}
		}
		if before != nil {
			result.Status = statusOf(before)
		}
	default:
		result.Status = a.request.Judge(&answer)
		if result.Status == wire.Accepted {
			var err error
			if result.Status, err = s.answer(ctx, a, e, who); err != nil {
				return result, err
			}
		}
	}
	result.Accepted = result.Status == wire.Accepted
	if !result.Accepted {
		message := "The response was not accepted: " + string(result.Status) + "."
		result.Message = &message
		s.reject(ctx, at, &answer, result.Status)
	}
	return result, nil
}

// answer hands an answer to the hub, one at a time.
func (s *Server) answer(ctx context.Context, a *asked, e *wire.Event, who Who) (wire.RespondStatus, error) {
	ctx = context.WithoutCancel(ctx)
	unlock := s.locks.lock("request/" + a.id)
	defer unlock()
	r, err := s.hub.Request(ctx, a.id)
	if fault.CodeOf(err) == fault.NotFound {
		return wire.NotFound, nil
	}
	if err != nil {
		return "", err
	}
	if r.State != request.Open {
		return statusOf(&r), nil
	}
	given := given(e)
	given.As, err = s.actor(ctx, who)
	if err != nil {
		return "", err
	}
	if given.As == r.AskedBy {
		return wire.TargetMismatch, nil // nobody answers itself
	}
	envelope, err := e.Append(nil, wire.Branches)
	if err != nil {
		return "", err
	}
	ext := answerExt{}
	if len(envelope) < largeAnswer {
		ext.Response = envelope
	}
	if given.Ext, err = marshal(ext); err != nil {
		return "", err
	}
	a.mu.Lock()
	a.response = e
	a.mu.Unlock()
	var ended *hub.RequestEnded
	_, err = s.hub.Answer(ctx, a.id, given, trusted)
	switch {
	case err == nil:
		return wire.Accepted, nil
	case errors.As(err, &ended):
		return statusOf(&ended.Request), nil
	}
	a.mu.Lock()
	a.response = nil
	a.mu.Unlock()
	if fault.CodeOf(err) == fault.AccessDenied {
		return wire.TargetMismatch, nil
	}
	return "", err
}

// reject tells readers of an answer that was not taken.
func (s *Server) reject(ctx context.Context, at *scope, answer *wire.Response, status wire.RespondStatus) {
	sender, err := s.user(ctx)
	if err != nil {
		return
	}
	e := &wire.Event{Payload: wire.AgentResponseRejected{
		RequestID: answer.RequestID, ResponseEventType: answer.Type, Status: status, RejectedAt: s.now(),
	}}
	e.Scope = at.wire()
	if err := s.showIn(ctx, at.channel, sender, e); err != nil && !hub.Deleted(err) {
		s.log.Warn("a rejected answer was not shown", "error", err)
	}
}

// rememberedRequests is how many requests of a branch are looked through for one
// that has ended.
const rememberedRequests = 1000

// askedBefore finds a request that ended, or that a run of another process
// asked; nil if there is none.
func (s *Server) askedBefore(ctx context.Context, at *scope, id string) (*hub.Request, error) {
	page, err := s.hub.Requests(ctx, hub.RequestQuery{Channel: at.channel, Newest: true, Limit: rememberedRequests})
	if err != nil {
		return nil, err
	}
	for i := range page.Requests {
		var ext askExt
		if json.Unmarshal(page.Requests[i].Ext, &ext) == nil && ext.RequestID == id {
			return &page.Requests[i], nil
		}
	}
	return nil, nil
}

func (s *Server) postResponse(c *call) error {
	data, err := c.body()
	if err != nil {
		return err
	}
	e, err := s.cfg.Registry.ParseResponse(data, s.wireLimits())
	if err != nil {
		return err
	}
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	result, err := s.respond(c.Context(), x, e, c.who)
	var own *refusal
	if errors.As(err, &own) && own.problem.Result != nil {
		own.problem = wire.NoRuntime(c.surface, own.problem.Title)
	}
	if err != nil {
		return err
	}
	if !result.Accepted {
		return &refusal{wire.Refused(result)}
	}
	return c.write(http.StatusOK, result)
}

// listRequests lists what is open on a branch, also after a reload.
func (s *Server) listRequests(c *call) error {
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	page, err := s.hub.Requests(c.Context(), hub.RequestQuery{Channel: x.channel, State: request.Open, Limit: rememberedRequests})
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

// Ask asks a request and waits for its answer. Without one in time, or where the
// run is cut off, it returns an error.
func (r *Run) Ask(ctx context.Context, question wire.Payload, timeout time.Duration) (wire.Payload, error) {
	if kept, ok := r.server.permits.of(r.run, question); ok {
		return kept, nil
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
		r.server.permits.keep(r.run, question, got.response.Payload)
		return got.response.Payload, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// adoptRequests takes over what a run asked in another process: open requests
// are waited for, and answers that may not have been handed over are kept.
func (s *Server) adoptRequests(ctx context.Context, x *run) error {
	page, err := s.hub.Requests(ctx, hub.RequestQuery{Channel: x.scope.channel, Limit: rememberedRequests})
	if err != nil {
		return err
	}
	for i := range page.Requests {
		r := &page.Requests[i]
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
			x.answers = append(x.answers, s.responseOf(a, r))
		case r.State == request.Open && s.asks.add(a):
			s.background.Go(func() {
				s.awaitAnswer(a, r.DueAt.Sub(r.AskedAt), func(response *wire.Event, _ hub.Request) { s.answered(x, response) })
			})
		}
	}
	return nil
}
