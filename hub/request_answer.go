package hub

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/marks"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/request"
)

// Answer is an answer to a request.
type Answer struct {
	Choice string
	Text   string
	Note   string
	As     string // the agent that it is spoken for; empty: an operator answers
	Digest string // of the action that was shown; empty: not compared
	Ext    jsontext.Value
}

// RequestEnded refuses an answer to a request that is not open any more.
type RequestEnded struct {
	Request Request
	cause   *fault.Error
}

func (e *RequestEnded) Error() string { return e.cause.Error() }

// Unwrap gives the refusal its code and reason.
func (e *RequestEnded) Unwrap() error { return e.cause }

func errRequestEnded(r Request) error {
	e := &RequestEnded{Request: r}
	switch r.State {
	case request.Answered:
		e.cause = fault.New(fault.Conflict, "request '%s' has another answer already", r.ID).Because(fault.RequestAnswered)
	case request.Expired:
		e.cause = fault.New(fault.Conflict, "request '%s' expired at %s", r.ID, envelope.FormatTime(r.DueAt)).Because(fault.RequestExpired)
	default:
		e.cause = fault.New(fault.Conflict, "request '%s' was cancelled: %s", r.ID, r.Reason).Because(fault.RequestCancelled)
	}
	return e
}

// Answer answers a request and returns it once that is durable. Only the first answer
// counts. Repeating it returns the same result; a different or late answer is refused with
// *RequestEnded.
func (h *Hub) Answer(ctx context.Context, id string, a Answer, by *Caller) (Request, error) {
	return h.endRequest(ctx, id, func(r *Request) error {
		if err := h.mayAnswer(ctx, r, &a, by); err != nil {
			return err
		}
		return h.checkAnswer(r, &a)
	}, func(r *Request, at time.Time) *request.End {
		if r.State == request.Open && !r.DueAt.IsZero() && !at.Before(r.DueAt) {
			return &request.End{ID: id, State: request.Expired, IfNobodyAnswers: r.IfNobodyAnswers}
		}
		return &request.End{ID: id, State: request.Answered, Answer: a.by(by, at)}
	})
}

// by is the answer as it is stored.
func (a *Answer) by(caller *Caller, at time.Time) *request.Answer {
	answer := &request.Answer{Choice: a.Choice, Text: a.Text, Note: a.Note, Ext: a.Ext, At: at, By: request.By{Agent: a.As}}
	if caller != nil {
		answer.By.Key, answer.By.Connection = caller.Key, caller.Connection
	}
	return answer
}

func (h *Hub) checkAnswer(r *Request, a *Answer) error {
	if a.Digest != "" && (r.Action == nil || a.Digest != r.Action.Digest) {
		return fault.New(fault.Conflict, "the action that was shown is not the one that request '%s' asks for; look at it again", r.ID).Because(fault.DigestDiffers)
	}
	return r.CheckAnswer(a.by(nil, time.Time{}))
}

// mayAnswer decides who may answer: the agent that the request is for, or else a member of
// its channel other than the asker, and operators. An agent answers for a person only if
// the request allows it.
func (h *Hub) mayAnswer(ctx context.Context, r *Request, a *Answer, by *Caller) error {
	operator := by == nil || by.Anyone || by.Role >= RoleOperator
	if a.As == "" {
		if !operator {
			return fault.New(fault.Invalid, "the answer does not say whom it is given for").Because(fault.NoActor)
		}
		return nil
	}
	m := h.registry.ByID(a.As)
	if m == nil {
		return fault.New(fault.NotFound, "nobody is registered as '%s'", a.As).Because(fault.NoAgent)
	}
	if !operator && !by.MayActFor(a.As) {
		return fault.New(fault.AccessDenied, "this connection may not act for '%s'", a.As)
	}
	switch {
	case r.For == a.As:
		return nil
	case r.For != "" && !operator:
		return fault.New(fault.AccessDenied, "request '%s' is for '%s'", r.ID, r.For)
	case r.AskedBy == a.As:
		return fault.New(fault.AccessDenied, "'%s' asked request '%s' itself; somebody else answers it", a.As, r.ID)
	case !r.AgentsMayAnswer && !m.Profile().Passport.Kind.Is(identity.Human):
		return fault.New(fault.AccessDenied, "request '%s' is asked of a person, and '%s' is not one", r.ID, a.As)
	case r.For != "":
		return nil
	}
	s, err := h.snapshot(ctx, r.Channel, 0)
	if err != nil {
		return err
	}
	member, err := h.isMember(ctx, s, a.As)
	if err == nil && !operator && !member {
		return fault.New(fault.AccessDenied, "'%s' takes no part in channel '%s'", a.As, r.Channel)
	}
	return err
}

// CancelRequest withdraws a request: its asker may, and operators. One that has
// ended stays as it is.
func (h *Hub) CancelRequest(ctx context.Context, id, reason string, by *Caller) (Request, error) {
	if err := h.boundRecord("reason", len(reason)); err != nil {
		return Request{}, err
	}
	r, err := h.endRequest(ctx, id, func(r *Request) error {
		if by.MayActFor(r.AskedBy) || by.Role >= RoleOperator {
			return nil
		}
		return fault.New(fault.AccessDenied, "request '%s' is cancelled by '%s', who asked it, or by an operator", id, r.AskedBy)
	}, func(*Request, time.Time) *request.End {
		return &request.End{ID: id, State: request.Cancelled, Reason: reason}
	})
	if ended, ok := errors.AsType[*RequestEnded](err); ok {
		return ended.Request, nil
	}
	return r, err
}

// CancelRequests withdraws the open requests of a channel, or those of a run, as
// one batch.
func (h *Hub) CancelRequests(ctx context.Context, channelID, run, reason string) error {
	p, err := h.writeBatch(ctx, channelID, func(b *batch) error {
		if err := b.cancelOpen(reason, run); err != nil {
			return err
		}
		if len(b.sides) == 0 {
			return errNothing
		}
		return nil
	})
	if err != nil || p == nil {
		return unavailable(err)
	}
	_, err = p.Wait(ctx)
	return err
}

// endRequest ends an open request, and refuses one that is not open.
func (h *Hub) endRequest(ctx context.Context, id string, may func(*Request) error, end func(*Request, time.Time) *request.End) (Request, error) {
	for {
		r, err := h.Request(ctx, id)
		if err != nil {
			return Request{}, err
		}
		if err := may(&r); err != nil {
			return Request{}, err
		}
		if r.State != request.Open {
			return endedAs(r, end(&r, h.now().UTC()))
		}
		var ended *request.End
		var at time.Time
		p, err := h.writeBatch(ctx, r.Channel, func(b *batch) error {
			asked, ok := b.openRequest(id)
			if !ok {
				return errNotOpen
			}
			at = b.now.UTC().Truncate(time.Microsecond) // as it is stored
			ended = end(asked.Request, b.now)
			return b.endRequest(asked, ended)
		})
		if errors.Is(err, errNotOpen) {
			// It has ended by a batch that may not be durable yet.
			_, err := answer(ctx, h, r.Channel, func(*loadedChannel) (struct{}, error) { return struct{}{}, nil })
			if err != nil {
				return Request{}, err
			}
			continue
		}
		if err != nil {
			return Request{}, unavailable(err)
		}
		if _, err := p.Wait(ctx); err != nil {
			return Request{}, err
		}
		after := *r.After(ended)
		after.EndedAt = at
		if ended.State == request.Expired {
			return after, errRequestEnded(after)
		}
		return after, nil
	}
}

// endedAs answers somebody who wants to end a request that has ended.
func endedAs(r Request, want *request.End) (Request, error) {
	if want.Answer != nil && r.Answer != nil && r.Answer.Same(want.Answer) {
		return r, nil
	}
	return r, errRequestEnded(r)
}

// marks.OpenRequest finds an open request of the channel.
func (b *batch) openRequest(id string) (_ marks.OpenRequest, ok bool) {
	open := b.currentMarks().Open
	i := slices.IndexFunc(open, func(r marks.OpenRequest) bool { return r.ID == id })
	if i < 0 {
		return marks.OpenRequest{}, false
	}
	return open[i], true
}

// cancelOpen cancels the open requests of the channel, or those of a run.
func (b *batch) cancelOpen(reason, run string) error {
	for _, r := range b.currentMarks().Open {
		if run != "" && r.Run != run {
			continue
		}
		if err := b.endRequest(r, &request.End{ID: r.ID, State: request.Cancelled, Reason: reason}); err != nil {
			return err
		}
	}
	return nil
}

// endTypes are the envelopes that tell of each end.
var endTypes = map[request.State]string{
	request.Answered: request.TypeAnswer, request.Expired: request.TypeExpired, request.Cancelled: request.TypeCancelled,
}

// endRequest puts the end of an open request into the batch.
func (b *batch) endRequest(r marks.OpenRequest, end *request.End) error {
	e := &envelope.Envelope{
		Sender: b.meta.Creator, Type: endTypes[end.State], Audience: audience(r.Request), Causation: r.ID,
		Priority: envelope.Normal, Origin: envelope.Origin{Dialect: hubMade},
	}
	if r.For != "" {
		e.Audience = []string{r.For, r.AskedBy}
	}
	if end.Answer != nil && end.Answer.By.Agent != "" {
		e.Sender = end.Answer.By.Agent
	}
	if err := b.addSide(e, false); err != nil {
		return err
	}
	if end.Answer != nil {
		end.Answer.Envelope = e.ID
	}
	var err error
	if e.Data, err = json.Marshal(end); err != nil {
		return fault.Wrap(fault.Invalid, err, "the answer cannot be written: %v", err)
	}
	if !b.meta.State.Terminal() { // else the channel's end is audited
		if err := b.auditEnd(r.Request, end); err != nil {
			return err
		}
	}
	side := &b.sides[len(b.sides)-1]
	side.note = schema.SideRecord{Kind: schema.SideRequestEnded, Name: r.ID}
	now := b.now
	side.finish = func(seq uint64, record *journal.Record) { unlist(record, r.After(end), r.Asked, seq, now) }
	h := b.hub
	b.after = append(b.after, func() { h.requests.wake(r.ID) })
	return nil
}

// unlist moves a request in the index from the open ones to where it ended.
func unlist(record *journal.Record, r *Request, asked, ended uint64, now time.Time) {
	row := rowOf(r)
	row.Asked, row.Ended = asked, ended
	record.Remove = append(record.Remove, schema.RequestKeys(string(request.Open), r.DueAt, r.ID)...)
	record.Remove = append(record.Remove, schema.Key(schema.IndexRequestAsker, r.AskedBy, r.ID))
	if !r.DueAt.IsZero() {
		record.Remove = append(record.Remove, schema.DueKey(schema.DueRequest, r.DueAt, r.ID))
	}
	putRow(record, &row, r.DueAt, r.ID)
	if r.Answer == nil || !request.Approves(r.Answer.Choice) && !request.Denies(r.Answer.Choice) {
		return
	}
	decided := schema.RequestRow{Approved: request.Approves(r.Answer.Choice), At: now.UnixNano()}
	record.Put = append(record.Put, journal.IndexPut{Key: schema.Key(schema.IndexRequestSimilar, similarity(r), r.ID), Value: decided.Encode()})
}

func (b *batch) auditEnd(r *Request, end *request.End) error {
	f := fields{"channel_id": b.ch.id, "request_id": r.ID, "kind_of_request": r.Kind, "state": string(end.State)}
	if end.Reason != "" {
		f["reason"] = end.Reason
	}
	if a := end.Answer; a != nil {
		f["choice"], f["agent_id"], f["key"], f["connection"] = a.Choice, a.By.Agent, a.By.Key, a.By.Connection
	}
	return b.audit("request_ended", f)
}

// SweepRequests ends the requests that nobody answered in time, and returns how
// many that were.
func (h *Hub) SweepRequests(ctx context.Context) int {
	return h.sweepEntries(ctx, schema.DueRequest, schema.DueBy(schema.DueRequest, h.now()), func(entry journal.IndexEntry) error {
		return h.expireRequest(ctx, string(entry.Value), schema.LastPart(entry.Key))
	})
}

func (h *Hub) expireRequest(ctx context.Context, channelID, id string) error {
	p, err := h.writeBatch(ctx, channelID, func(b *batch) error {
		r, ok := b.openRequest(id)
		if !ok || r.DueAt.After(b.now) {
			return errNothing // it ended by a batch that is on its way
		}
		return b.endRequest(r, &request.End{ID: id, State: request.Expired, IfNobodyAnswers: r.IfNobodyAnswers})
	})
	if err != nil || p == nil {
		return fault.IgnoreNotFound(unavailable(err))
	}
	_, err = p.Wait(ctx)
	return err
}
