package wire

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonscan"
	"github.com/parley-hub/parley/view/branch"
)

// Response has the fields that all four kinds of answers have in common.
type Response struct {
	RequestID      string
	Type           string
	ResponderID    string
	ResponderGroup string
	Capabilities   []string
}

// Request has the fields that all four kinds of requests have in common.
type Request struct {
	RequestID string
	Type      string
	// Expects is the type of the answer.
	Expects    string
	SourceName string
	Policy     ResponsePolicy
	Target     *Target
	Visibility RequestVisibility
}

// ParseResponse reads a body of the responses route: exactly one answer.
func (r *Registry) ParseResponse(data []byte, limits Limits) (*Event, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fault.New(fault.Invalid, "A response event envelope is required.")
	}
	if depth := limits.withDefaults().Depth; jsonscan.Deeper(data, depth) {
		return nil, fault.New(fault.TooLarge, "the response is nested more than %d deep", depth)
	}
	e, err := r.Parse(data, limits)
	if err != nil {
		return nil, err
	}
	if _, ok := ResponseOf(e); !ok {
		return nil, fault.New(fault.Invalid, "%s is not a response; send the one that the request expects", e.Payload.EventType())
	}
	return e, nil
}

// ParseResponseAs reads an answer of one type. The body need not name the type.
func (r *Registry) ParseResponseAs(name string, data []byte, limits Limits) (*Event, error) {
	if list, err := membersOf(data); err == nil && !hasMember(list, "type") {
		data = withType(name, list, data)
	}
	e, err := r.ParseResponse(data, limits)
	if err == nil && e.Payload.EventType() != name {
		err = fault.New(fault.Invalid, "%s is not a %s, which this route takes", e.Payload.EventType(), name)
	}
	return e, err
}

// ResponseOf reads an event as an answer.
func ResponseOf(e *Event) (Response, bool) {
	r := Response{Type: e.Payload.EventType()}
	who := func(id, group *string, capabilities []string) {
		r.ResponderID, r.ResponderGroup, r.Capabilities = deref(id), deref(group), capabilities
	}
	switch p := e.Payload.(type) {
	case PermissionResponse:
		r.RequestID = p.PermissionID
		who(p.ResponderID, p.ResponderGroup, p.Capabilities)
	case ContinuationResponse:
		r.RequestID = p.ContinuationID
		who(p.ResponderID, p.ResponderGroup, p.Capabilities)
	case ClarificationResponse:
		r.RequestID = p.RequestID
		who(p.ResponderID, p.ResponderGroup, p.Capabilities)
	case ClientToolInvokeResponse:
		r.RequestID = p.RequestID
		who(p.ResponderID, p.ResponderGroup, p.Capabilities)
	default:
		return Response{}, false
	}
	return r, true
}

// RequestOf reads an event as a request.
func RequestOf(e *Event) (Request, bool) {
	r := Request{Type: e.Payload.EventType(), Policy: FirstValidResponseWins, Visibility: AllObservers}
	set := func(id, source, expects string, policy ResponsePolicy, target *Target, visibility RequestVisibility) {
		r.RequestID, r.SourceName, r.Expects, r.Target = id, source, expects, target
		if policy != "" {
			r.Policy = policy
		}
		if visibility != "" {
			r.Visibility = visibility
		}
	}
	switch p := e.Payload.(type) {
	case PermissionRequest:
		set(p.PermissionID, p.SourceName, branch.PermissionResponse, p.ResponsePolicy, p.Target, p.Visibility)
	case ContinuationRequest:
		set(p.ContinuationID, p.SourceName, branch.ContinuationResponse, p.ResponsePolicy, p.Target, p.Visibility)
	case ClarificationRequest:
		set(p.RequestID, p.SourceName, branch.ClarificationResponse, p.ResponsePolicy, p.Target, p.Visibility)
	case ClientToolInvokeRequest:
		set(p.RequestID, deref(p.SourceName), branch.ClientToolInvokeResponse, p.ResponsePolicy, p.Target, p.Visibility)
	default:
		return Request{}, false
	}
	return r, true
}

// Judge returns whether an answer fits an open request: its type, and with the
// targeted policy its sender. Neither refusal ends the request.
func (r *Request) Judge(answer *Response) RespondStatus {
	switch {
	case answer.RequestID != r.RequestID:
		return NotFound
	case answer.Type != r.Expects:
		return ResponseTypeMismatch
	case r.Policy == TargetedResponder && r.Target != nil && !r.Target.admits(answer):
		return TargetMismatch
	}
	return Accepted
}

func (t *Target) admits(answer *Response) bool {
	if t.ResponderID != nil && *t.ResponderID != answer.ResponderID {
		return false
	}
	if t.ResponderGroup != nil && *t.ResponderGroup != answer.ResponderGroup {
		return false
	}
	for _, needed := range t.RequiredCapabilities {
		if !slices.Contains(answer.Capabilities, needed) {
			return false
		}
	}
	return true
}

func deref(s *string) string { return *cmp.Or(s, new(string)) }
