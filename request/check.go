package request

import (
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
)

// Bounds of a request.
const (
	MaxBytes   = 48 << 10 // of the whole request as JSON
	MaxChoices = 32
	MaxName    = 256 // bytes of a kind, a choice's id, an action's name, a title
)

// Prepare checks a request and fills in the digest. It drops what only the hub
// sets.
func (r *Request) Prepare(now time.Time) error {
	r.ID, r.State, r.Reason, r.Answer, r.Similar, r.AskedAt = "", Open, "", nil, nil, now
	switch {
	case r.Kind == "" || len(r.Kind) > MaxName:
		return fault.New(fault.Invalid, "kind has %d bytes; give 1 to %d, for example %q", len(r.Kind), MaxName, Approval)
	case r.Title == "" || len(r.Title) > MaxName:
		return fault.New(fault.Invalid, "title has %d bytes; give 1 to %d", len(r.Title), MaxName)
	case r.Channel == "":
		return fault.New(fault.Invalid, "channel_id is empty; a request is asked in a channel")
	case !r.DueAt.IsZero() && !r.DueAt.After(now):
		return fault.New(fault.Invalid, "due_at %s is not in the future", r.DueAt.UTC().Format(time.RFC3339))
	case r.DueAt.Year() > 9999:
		return fault.New(fault.Invalid, "due_at is after the year 9999")
	}
	if err := r.checkChoices(); err != nil {
		return err
	}
	if err := r.checkAction(); err != nil {
		return err
	}
	if len(r.Ext) > 0 && (r.Ext.Kind() != '{' || !r.Ext.IsValid()) {
		return fault.New(fault.Invalid, "ext is not a JSON object")
	}
	if !r.DueAt.IsZero() {
		r.DueAt = r.DueAt.UTC()
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the request cannot be written as JSON: %v", err)
	}
	if len(text) > MaxBytes {
		return fault.New(fault.TooLarge, "the request has %d bytes; at most %d: name large arguments by reference", len(text), MaxBytes)
	}
	return nil
}

func (r *Request) checkChoices() error {
	if len(r.Choices) > MaxChoices {
		return fault.New(fault.TooLarge, "%d choices; at most %d", len(r.Choices), MaxChoices)
	}
	for i, c := range r.Choices {
		switch {
		case c.ID == "" || len(c.ID) > MaxName:
			return fault.New(fault.Invalid, "choices/%d/id has %d bytes; give 1 to %d", i, len(c.ID), MaxName)
		case slices.ContainsFunc(r.Choices[:i], func(other Choice) bool { return other.ID == c.ID }):
			return fault.New(fault.Invalid, "choice %q is given twice; give it once", c.ID)
		}
	}
	switch {
	case r.IfNobodyAnswers == "":
		return nil
	case len(r.Choices) > 0 && !r.Offers(r.IfNobodyAnswers):
		return fault.New(fault.Invalid, "if_nobody_answers is %q, which is not the id of a choice", r.IfNobodyAnswers)
	case r.DueAt.IsZero():
		return fault.New(fault.Invalid, "if_nobody_answers is given without due_at; say until when to wait")
	}
	return nil
}

func (r *Request) checkAction() error {
	if r.Action == nil {
		return nil
	}
	a := *r.Action
	if a.Name == "" || len(a.Name) > MaxName {
		return fault.New(fault.Invalid, "action/name has %d bytes; give 1 to %d", len(a.Name), MaxName)
	}
	if len(a.Arguments) > 0 {
		a.Arguments = slices.Clone(a.Arguments)
		if err := a.Arguments.Compact(); err != nil { // as it is stored
			return fault.Wrap(fault.Invalid, err, "action/arguments is not JSON: %v", err)
		}
	} else {
		a.Arguments = nil
	}
	a.Digest = a.digest()
	r.Action = &a
	return nil
}

// CheckAnswer refuses an answer that the request does not offer.
func (r *Request) CheckAnswer(a *Answer) error {
	switch {
	case len(a.Choice)+len(a.Text)+len(a.Note)+len(a.Ext) > MaxBytes:
		return fault.New(fault.TooLarge, "the answer has more than %d bytes", MaxBytes)
	case len(r.Choices) > 0 && !r.Offers(a.Choice):
		ids := make([]string, len(r.Choices))
		for i, c := range r.Choices {
			ids[i] = c.ID
		}
		return fault.New(fault.Invalid, "choice is %q; it is one of %s", a.Choice, strings.Join(ids, ", "))
	case len(r.Choices) == 0 && a.Choice != "":
		return fault.New(fault.Invalid, "the request offers no choices; answer with a text")
	case len(r.Choices) == 0 && a.Text == "" && len(a.Ext) == 0:
		return fault.New(fault.Invalid, "text is empty; the request asks for one")
	case len(a.Ext) > 0 && (a.Ext.Kind() != '{' || !a.Ext.IsValid()):
		return fault.New(fault.Invalid, "ext is not a JSON object")
	}
	return nil
}

// SameQuestion reports whether two requests ask the same, whatever their
// times.
func (r *Request) SameQuestion(o *Request) bool {
	return r.Kind == o.Kind && r.AskedBy == o.AskedBy && r.Channel == o.Channel && r.For == o.For && r.Title == o.Title &&
		r.Body == o.Body && slices.Equal(r.Choices, o.Choices) && r.digestOf() == o.digestOf()
}

func (r *Request) digestOf() string {
	if r.Action == nil {
		return ""
	}
	return r.Action.Digest
}

// Encode writes a request for the log.
func (r *Request) Encode() ([]byte, error) { return json.Marshal(r) }

// Decode reads what Encode writes.
func Decode(data []byte) (*Request, error) {
	r := &Request{}
	err := json.Unmarshal(data, r, jsontext.AllowDuplicateNames(true))
	return r, err
}

// End is the end of a request, as it is stored in the log.
type End struct {
	ID     string  `json:"request_id"`
	State  State   `json:"state"`
	Reason string  `json:"reason,omitzero"`
	Answer *Answer `json:"answer,omitzero"`
	// IfNobodyAnswers repeats the request's field, for readers that see only
	// the end.
	IfNobodyAnswers string `json:"if_nobody_answers,omitzero"`
}

// DecodeEnd reads the data of an envelope that ends a request.
func DecodeEnd(data []byte) (*End, error) {
	e := &End{}
	err := json.Unmarshal(data, e, jsontext.AllowDuplicateNames(true))
	return e, err
}

// After returns the request after its end.
func (r *Request) After(e *End) *Request {
	next := *r
	next.State, next.Reason, next.Answer = e.State, e.Reason, e.Answer
	return &next
}
