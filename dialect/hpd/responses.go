package hpd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/request"
)

// answerExt is the dialect's part of an answer.
type answerExt struct {
	Response wire.Raw `json:"response,omitzero"`
	Content  string   `json:"content,omitzero"` // id of the content of the session that holds a large response until its run ends
}

const (
	largeAnswer = 20 << 10 // bytes of a response; the request holds it twice, as an event and as a text
	shownAnswer = 8 << 10  // bytes of a large response's text that other surfaces show
)

// responseOf returns the answer as a response event: the client's own, or one made
// from the answer of another surface.
func (s *Server) responseOf(ctx context.Context, a *asked, r *hub.Request) (*wire.Event, error) {
	a.mu.Lock()
	e := a.response
	a.mu.Unlock()
	if e != nil {
		return e, nil
	}
	var ext answerExt
	if json.Unmarshal(r.Answer.Ext, &ext) == nil && ext.Content != "" {
		var err error
		if ext.Response, err = s.largeResponse(ctx, a, ext.Content); err != nil {
			return nil, err
		}
	}
	if len(ext.Response) > 0 {
		if e, err := s.cfg.Registry.Parse(ext.Response, s.wireLimits()); err == nil {
			return e, nil
		}
	}
	return madeResponse(&a.request, r.Answer), nil
}

// largeResponse reads a response that is stored as content, which is removed
// when the run ends.
func (s *Server) largeResponse(ctx context.Context, a *asked, id string) ([]byte, error) {
	_, from, err := s.hub.Content(ctx, a.run.scope.session.home, id)
	if fault.CodeOf(err) == fault.NotFound {
		s.log.Error("a large answer is missing; the text of its request is used instead", "request", a.id)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer from.Close()
	data, err := io.ReadAll(from)
	if err == nil {
		a.run.removeAtEnd(id)
	}
	return data, err
}

// removeAtEnd schedules the removal of a content for the end of the run.
func (x *run) removeAtEnd(content string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.contents = append(x.contents, content)
}

// dropContents removes the content that held answers to a run.
func (s *Server) dropContents(ctx context.Context, x *run) {
	x.mu.Lock()
	list := x.contents
	x.contents = nil
	x.mu.Unlock()
	for _, id := range list {
		if err := s.hub.DropContent(ctx, x.scope.session.home, id, trusted); err != nil && !hub.Deleted(err) {
			s.log.Warn("a large answer was not removed", "error", err)
		}
	}
}

// statusOf returns the status for an answer to a request that has ended.
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

// respond processes an answer. An error is a refusal; otherwise the result says
// whether the answer was accepted.
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

// answer passes an answer to the hub, one at a time.
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
		return wire.TargetMismatch, nil // an identity cannot answer its own request
	}
	envelope, err := e.Append(nil, wire.Branches)
	if err != nil {
		return "", err
	}
	ext := answerExt{Response: envelope}
	if len(envelope) > largeAnswer {
		info := hub.ContentInfo{Name: contentName("", "response"), Type: "application/json", By: given.As}
		if info, err = s.hub.PutContent(ctx, a.run.scope.session.home, info, bytes.NewReader(envelope)); err != nil {
			return "", err
		}
		a.run.removeAtEnd(info.ID)
		ext = answerExt{Content: info.ID}
		given.Text, given.Note = cut(given.Text, shownAnswer), cut(given.Note, shownAnswer)
	}
	if given.Ext, err = marshal(ext); err != nil {
		return "", err
	}
	a.mu.Lock()
	a.response = e
	a.mu.Unlock()
	var ended *hub.RequestEnded
	_, err = s.hub.Answer(ctx, a.id, given, caller(who, given.As))
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

// reject shows readers that an answer was not accepted.
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

// rememberedFor is how long the result of an ended request can be queried.
const rememberedFor = time.Hour

// askedBefore finds a request that ended recently, or that a run of an earlier
// process asked; nil if there is none.
func (s *Server) askedBefore(ctx context.Context, at *scope, id string) (*hub.Request, error) {
	page, err := s.hub.Requests(ctx, hub.RequestQuery{Channel: at.channel, Newest: true, Limit: s.cfg.Limits.Requests})
	if err != nil {
		return nil, err
	}
	for i := range page.Requests {
		var ext askExt
		r := &page.Requests[i]
		if json.Unmarshal(r.Ext, &ext) != nil || ext.RequestID != id {
			continue
		}
		if r.State != request.Open && s.cfg.Now().Sub(r.EndedAt) >= rememberedFor {
			return nil, nil // older requests of that id ended before it
		}
		return r, nil
	}
	return nil, nil
}

// Respond answers a request in process, as an operator.
func (s *Server) Respond(ctx context.Context, at wire.Scope, response wire.Payload) (wire.RespondResult, error) {
	of, err := s.lookup(ctx, at.Session)
	if err != nil {
		return wire.RespondResult{}, err
	}
	x, err := s.branch(ctx, of, at.Branch)
	if err != nil {
		return wire.RespondResult{}, err
	}
	result, err := s.respond(ctx, x, &wire.Event{Payload: response}, Who{Role: Operator})
	if own, ok := errors.AsType[*refusal](err); ok {
		return result, fault.New(fault.Conflict, "%s", own.problem.Title).Because(fault.NoRun)
	}
	return result, err
}

func (s *Server) postResponse(c *call) error {
	e, err := s.readResponse(c)
	if fault.CodeOf(err) == fault.TooLarge {
		if _, err := s.scope(c); err != nil {
			return err
		}
	}
	if err != nil {
		return notTaken(c, err)
	}
	return s.takeResponse(c, e)
}

func (s *Server) readResponse(c *call) (*wire.Event, error) {
	data, err := c.body()
	if err != nil {
		return nil, err
	}
	return s.cfg.Registry.ParseResponse(data, s.wireLimits())
}

// notTaken refuses an answer that is too large with 409: after any other refusal
// the stock client reads no more events (§10.6 C8).
func notTaken(c *call, err error) error {
	if fault.CodeOf(err) != fault.TooLarge {
		return err
	}
	return &refusal{wire.NewProblem(c.surface, http.StatusConflict, wire.ResponseTooLarge, err.Error())}
}

// takeResponse passes an answer to its request.
func (s *Server) takeResponse(c *call, e *wire.Event) error {
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	result, err := s.respond(c.Context(), x, e, c.who)
	if own, ok := errors.AsType[*refusal](err); ok && own.problem.Result != nil {
		own.problem = wire.NoRuntime(c.surface, own.problem.Title)
	}
	if err != nil {
		return notTaken(c, err)
	}
	if !result.Accepted {
		return &refusal{wire.Refused(result)}
	}
	return c.write(http.StatusOK, result)
}
