package hpd

import (
	"cmp"
	"strings"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/request"
)

// Choices of permissions and continuations, as the hub's own surfaces offer them.
const (
	approve       = "approve"
	approveAlways = "approve_always"
	deny          = "deny"
	denyAlways    = "deny_always"
)

// question returns a request in the hub's own form, so that every surface can
// answer it.
func question(e *wire.Event) hub.Request {
	var r hub.Request
	switch p := e.Payload.(type) {
	case wire.PermissionRequest:
		r.Title, r.Body = "May "+p.FunctionName+" be called?", deref(p.Description)
		r.Action = &request.Action{Name: p.FunctionName, Arguments: p.Arguments}
		r.Choices = []request.Choice{{ID: approve}, {ID: approveAlways}, {ID: deny}, {ID: denyAlways}}
		r.IfNobodyAnswers = deny
	case wire.ContinuationRequest:
		r.Title = "May the run go on beyond its limit of iterations?"
		r.Choices = []request.Choice{{ID: approve}, {ID: deny}}
		r.IfNobodyAnswers = deny
	case wire.ClarificationRequest:
		r.Title = cutTitle(p.Question)
		r.Body = p.Question
		if len(p.Options) > 0 {
			r.Body += "\n" + strings.Join(p.Options, "\n")
		}
	case wire.ClientToolInvokeRequest:
		r.Title, r.Body = "Client tool "+p.ToolName, deref(p.Description)
		r.Action = &request.Action{Name: p.ToolName, Arguments: p.Arguments}
	}
	r.Title = cutTitle(r.Title)
	if r.Action != nil && len(r.Action.Name) > request.MaxName {
		r.Action = nil
	}
	return r
}

// cutTitle shortens a title to its bound.
func cutTitle(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "?"
	}
	return cut(text, request.MaxName)
}

// cut shortens a text to a bound.
func cut(text string, size int) string {
	for i := range text {
		if i > size-4 {
			return text[:i] + "…"
		}
	}
	return text
}

// given returns a response in the hub's own form.
func given(e *wire.Event) hub.Answer {
	decide := func(approved bool) string {
		if approved {
			return approve
		}
		return deny
	}
	switch p := e.Payload.(type) {
	case wire.PermissionResponse:
		choice := decide(p.Approved)
		switch {
		case p.Choice == wire.AllowAlways && p.Approved:
			choice = approveAlways
		case p.Choice == wire.DenyAlways && !p.Approved:
			choice = denyAlways
		}
		return hub.Answer{Choice: choice, Note: deref(p.Reason)}
	case wire.ContinuationResponse:
		return hub.Answer{Choice: decide(p.Approved)}
	case wire.ClarificationResponse:
		return hub.Answer{Text: p.Answer}
	}
	return hub.Answer{}
}

// madeResponse returns a response event for an answer that came from another
// surface.
func madeResponse(q *wire.Request, a *request.Answer) *wire.Event {
	e := &wire.Event{}
	approved := request.Approves(a.Choice)
	switch q.Expects {
	case wire.PermissionResponse{}.EventType():
		p := wire.PermissionResponse{PermissionID: q.RequestID, SourceName: q.SourceName, Approved: approved, Choice: wire.Ask}
		switch a.Choice {
		case approveAlways:
			p.Choice = wire.AllowAlways
		case denyAlways:
			p.Choice = wire.DenyAlways
		}
		if a.Note != "" {
			p.Reason = &a.Note
		}
		e.Payload = p
	case wire.ContinuationResponse{}.EventType():
		e.Payload = wire.ContinuationResponse{ContinuationID: q.RequestID, SourceName: q.SourceName, Approved: approved}
	case wire.ClarificationResponse{}.EventType():
		e.Payload = wire.ClarificationResponse{RequestID: q.RequestID, SourceName: q.SourceName, Answer: a.Text}
	default:
		text := a.Text
		e.Payload = wire.ClientToolInvokeResponse{RequestID: q.RequestID, Success: true, Content: []wire.ToolResultContent{{Type: "text", Text: &text}}}
	}
	return e
}

// requestEvent returns a request of another dialect's channel in HPD's form: a
// permission if it can be approved and denied, else a question.
func requestEvent(r *hub.Request, asker string) wire.Payload {
	if choiceOf(r, request.Approves) == "" || choiceOf(r, request.Denies) == "" {
		q := wire.ClarificationRequest{RequestID: r.ID, SourceName: asker, Question: r.Title, AgentName: &asker}
		if r.Body != "" {
			q.Question += "\n" + r.Body
		}
		for _, c := range r.Choices {
			q.Options = append(q.Options, cmp.Or(c.Label, c.ID))
		}
		return q
	}
	p := wire.PermissionRequest{PermissionID: r.ID, SourceName: asker, FunctionName: r.Title, CallID: r.ID, Description: new(cmp.Or(r.Body, r.Title))}
	if r.Action != nil {
		p.FunctionName, p.Arguments = r.Action.Name, r.Action.Arguments
	}
	return p
}

// choiceOf returns the first choice that is accepted, or "" if there is none.
func choiceOf(r *hub.Request, is func(string) bool) string {
	for _, c := range r.Choices {
		if is(c.ID) {
			return c.ID
		}
	}
	return ""
}

// chosen returns a response to a request of another dialect's channel in the hub's
// own form: one of the request's choices, or a text if it has none.
func chosen(r *hub.Request, e *wire.Event) (hub.Answer, bool) {
	a := given(e)
	if a.Choice == "" {
		for _, c := range r.Choices {
			if strings.EqualFold(a.Text, c.ID) || strings.EqualFold(a.Text, c.Label) {
				return hub.Answer{Choice: c.ID}, true
			}
		}
		return a, len(r.Choices) == 0
	}
	offered := func(id string) bool { return id == a.Choice }
	if choiceOf(r, offered) == "" { // that dialect does not offer permanent choices, or names them differently
		kind := request.Denies
		if request.Approves(a.Choice) {
			kind = request.Approves
		}
		a.Choice = choiceOf(r, kind)
	}
	return a, a.Choice != ""
}
